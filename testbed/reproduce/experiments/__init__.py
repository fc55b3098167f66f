"""One module per experiment; its name with ``-`` for ``_`` is what ``testbed reproduce`` calls it.

A module offers ``SUMMARY`` (one line), ``SOURCE`` (the publication and figure), ``COLUMNS`` of its
table, ``CASES`` (how many it makes unless told otherwise) and ``run(settings, progress) -> rows``. See
:mod:`testbed.reproduce.experiment`.
"""
