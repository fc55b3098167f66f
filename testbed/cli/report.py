"""``report DIR``: write the HTML report of a finished run, of a sweep, or the index of a folder of runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from testbed.cli.arguments import add_run_directories
from testbed.errors import EXIT_OK

NAME = "report"
HELP = "the HTML report of a run, a sweep or a folder of runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run_directories(parser, "directory of a finished run, of a sweep, or of runs, such as runs")
    parser.add_argument("--plots", action="store_true", help="also draw a run's plots as files (matplotlib)")


def run(arguments: argparse.Namespace) -> int:
    """Write ``report.html`` of each run and sweep, ``index.html`` of each folder of runs; prints where."""
    from testbed.machine.distribution import require_extra
    from testbed.report import runs_index
    from testbed.report.comparison.compared_runs import is_sweep
    from testbed.results.run_directory import open_all

    if arguments.plots:
        require_extra("plots")
    folders = [directory for directory in arguments.directory if runs_index.holds_runs(directory)]
    sweeps = [directory for directory in arguments.directory if is_sweep(directory)]
    open_all([directory for directory in arguments.directory if directory not in (*folders, *sweeps)])
    for directory in arguments.directory:
        if directory in folders:
            print(runs_index.update(directory))
        elif directory in sweeps:
            print(_of_sweep(directory))
        else:
            print(_of_run(directory, arguments.plots))
    return EXIT_OK


def _of_run(path: Path, plots: bool) -> Path:
    from testbed.report.html import build
    from testbed.results.run_directory import RunDirectory

    directory = RunDirectory.open(path)
    if doubt := directory.doubt():
        print(doubt, file=sys.stderr)
    return build(directory, plots=plots)


def _of_sweep(path: Path) -> Path:
    from testbed.report.comparison import page
    from testbed.report.comparison.compared_runs import collect

    return page.write(collect([path]), path, f"sweep {path.resolve().name}")
