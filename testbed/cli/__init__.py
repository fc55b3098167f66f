"""The command line: one module per verb, each with ``NAME``, ``HELP``, ``add_arguments`` and ``run``."""
