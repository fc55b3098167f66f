"""``report DIR``: draw the plots and write the HTML report of a finished run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from testbed.errors import EXIT_OK
from testbed.results.run_directory import open_all

NAME = "report"
HELP = "the HTML report of a run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, nargs="+", help="directory of a finished run")


def run(arguments: argparse.Namespace) -> int:
    """Write ``report.html`` and ``plots/`` in each directory; prints where."""
    from testbed.report.html import build

    for directory in open_all(arguments.directory):
        if doubt := directory.doubt():
            print(doubt, file=sys.stderr)
        print(build(directory))
    return EXIT_OK
