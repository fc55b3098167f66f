"""``testbed clean``: remove what a killed run left; touches only what a run has marked as its own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from testbed.errors import EXIT_OK

NAME: Final = "clean"
HELP: Final = "undo what a killed run left; touches only what it owns"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``clean``."""
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="where the runs are (runs)")


def run(arguments: argparse.Namespace) -> int:
    """End processes whose run is gone, list unfinished run directories, and print what was done."""
    from testbed.machine.ownership import end, strays
    from testbed.results.run_directory import UNFINISHED

    found = list(strays())
    for stray in found:
        what = f"process {stray.pid} ({stray.name}) of run {stray.run}, which is gone"
        if arguments.dry_run:
            print(f"would end {what}")
        else:
            print(f"ended {what}" if end(stray) else f"already gone: {what}")
    unfinished = sorted(arguments.out.glob(f"*/{UNFINISHED}"))
    for marker in unfinished:
        print(f"unfinished, or still running: {marker.parent} (kept; delete it if you do not need it)")
    if not found and not unfinished:
        print("nothing to clean")
    return EXIT_OK
