"""Schedulers and parts of managers of other packages, called by a run: each in a process without privileges.

The run itself is root, so it loads no code that does not belong to the testbed. Such a part runs in a process that has
the rights of the user who called sudo, or of ``nobody``; questions and answers are lines of JSON.
"""
