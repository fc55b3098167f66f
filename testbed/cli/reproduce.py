"""``testbed reproduce``: run an experiment of a paper and print the paper's numbers beside ours."""

from __future__ import annotations

import argparse
from pathlib import Path

from testbed.cli.completers import complete_with, experiments
from testbed.reproduce.paper_experiment import OUT

NAME = "reproduce"
HELP = "an experiment of a paper, beside the paper's own numbers; without NAME: which there are"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the experiment and its options."""
    name = parser.add_argument("name", metavar="NAME", nargs="?", help="the experiment, or 'all'")
    complete_with(name, experiments)
    parser.add_argument("--cases", type=int, metavar="N", help="how many cases, instead of the paper's number")
    parser.add_argument(
        "--seed", type=int, metavar="N", default=1, help="which draw of cases; the first hash seed (default: 1)"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="how many seeds an emulated or trace experiment takes")
    parser.add_argument(
        "--row",
        metavar="NAME",
        action="append",
        default=[],
        dest="only",
        help="only this row: a scenario of an emulated experiment, a manager of managers-x-schedulers (repeatable)",
    )
    parser.add_argument(
        "--trace",
        "--traces",
        type=Path,
        metavar="PATH",
        help="replay this trace instead of the synthetic one; manager-oracles: the folder with the authors' simulators",
    )
    parser.add_argument("--days", type=float, metavar="N", help="replay only the first N days")
    parser.add_argument(
        "--numerics",
        metavar="NAME",
        action="append",
        default=[],
        help="only these numerical settings of a trace experiment, standard or longer (repeatable; default: both)",
    )
    parser.add_argument(
        "--channels", type=int, metavar="N", help="connections per pair of ports, in the trace figures of Crux"
    )
    parser.add_argument("--redo", action="store_true", help="rerun kept runs whose verdict is not ok")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=OUT, help=f"where runs, rows and plots are kept (default: {OUT})"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (default: as many as cores)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--allow-degraded", action="store_true", help="status 0 even if a verdict is not ok")


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of one experiment or of all, or the list of experiments."""
    from testbed.reproduce.command import run as reproduce

    return reproduce(arguments)
