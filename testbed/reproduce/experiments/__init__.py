"""One module per experiment; its name with ``-`` for ``_`` is what ``testbed reproduce`` calls it.

A module offers ``SUMMARY`` (one line), ``SOURCE`` (the publication and figure), ``COLUMNS`` of its
table, ``CASES`` (how many it makes unless told otherwise, 0 if none) and ``run(settings, progress) -> rows``; one that
emulates also ``SEEDS``, the number of hash seeds. See :mod:`testbed.reproduce.experiment`.
"""
