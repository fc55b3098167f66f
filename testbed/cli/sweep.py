"""``testbed sweep``: many runs of one scenario, on this machine or on a Ray cluster, and one table."""

from __future__ import annotations

import argparse
from pathlib import Path

from testbed.cli.arguments import positive
from testbed.cli.completers import complete_with, files
from testbed.sweep.defaults import LOCAL, OUT

NAME = "sweep"
HELP = "run a scenario with every combination of parameters and seeds; goes on where it stopped"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sweep file, and where and how it runs."""
    about = "a sweep file: scenario, engine, schedulers, seeds, set"
    complete_with(parser.add_argument("sweep", metavar="SWEEP", help=about), files)
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"where points are kept (default: {OUT}/<file's name>)")
    parser.add_argument(
        "--processes",
        type=positive,
        metavar="N",
        help="runs at a time (default: as many as cores); an emulation is always alone",
    )
    parser.add_argument("--on", choices=("here", "ray"), default="here", help="here (default) or on a Ray cluster")
    parser.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        default=LOCAL,
        help="as ray.init takes it (default: local, a cluster of this machine)",
    )
    parser.add_argument("--redo", action="store_true", help="rerun kept points whose verdict is not ok")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--allow-degraded", action="store_true", help="status 0 even if a verdict is not ok")


def run(arguments: argparse.Namespace) -> int:
    """Run missing points, show all, and return the worst exit status of the points."""
    from testbed.sweep.command import run as run_sweep

    return run_sweep(arguments)
