"""``testbed open [RUN]``: the report of the newest run, or of RUN, in the browser."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from testbed.cli.completers import complete_with, runs
from testbed.errors import EXIT_OK, BadInputError

RUNS: Final = Path("runs")
NAME = "open"
HELP = "open the report of the newest run, or of RUN, in the browser"
REPORT: Final = "report.html"
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Without one of these there is no browser, or one that takes over the terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run."""
    asked = parser.add_argument("run_name", metavar="RUN", nargs="?", help="a run's directory, or its name in runs")
    complete_with(asked, runs)
    parser.add_argument("--out", type=Path, default=RUNS, metavar="DIR", help=f"where the runs are (default: {RUNS})")


def run(arguments: argparse.Namespace) -> int:
    """Print the path of the report, and show it where there is a display; never with the rights of root."""
    report = _newest(arguments.out) if arguments.run_name is None else _of(arguments.run_name, arguments.out)
    print(report)
    if not any(os.environ.get(name) for name in _DISPLAYS):
        print("no display here: open the file in a browser", file=sys.stderr)
    elif os.geteuid() == 0:
        print("a browser is not started as root: open the file as another user", file=sys.stderr)
    else:
        _show(report)
    return EXIT_OK


def _newest(runs: Path) -> Path:
    """The report that was written last, of the runs in ``runs``."""
    found = [path for path in runs.glob(f"*/{REPORT}") if path.is_file()]
    if not found:
        raise BadInputError(f"{runs}: no run with a report, expected one made by 'testbed run'")
    return max(found, key=lambda path: (path.stat().st_mtime, path.parent.name))


def _of(name: str, runs: Path) -> Path:
    """The report of the run ``name``, a path or a name in ``runs``."""
    directory = next((each for each in (Path(name), runs / name) if each.is_dir()), None)
    if directory is None:
        from topologies.input.spelling import nearest

        near = nearest(name, [path.name for path in runs.glob("*") if path.is_dir()])
        meant = f"did you mean '{near}'?" if near else "expected the directory of a run"
        raise BadInputError(f"{name}: no such run, {meant}")
    if not (directory / REPORT).is_file():
        raise BadInputError(f"{directory}: no {REPORT} in it, expected one: 'testbed report {directory}' writes it")
    return directory / REPORT


def _show(report: Path) -> None:
    import webbrowser

    if not webbrowser.open(report.resolve().as_uri()):
        print("no browser could be started: open the file in one", file=sys.stderr)
