"""Arguments that several verbs take."""

from __future__ import annotations

import argparse
from pathlib import Path

from testbed.cli.completers import complete_with, directories, scenarios, schedulers
from testbed.engines.names import ENGINES
from topologies.datapath import DATAPATHS


def add_scenario(parser: argparse.ArgumentParser) -> None:
    """Declare the scenario."""
    help_text = "a file, or the name of a bundled scenario (testbed list scenarios)"
    complete_with(parser.add_argument("scenario", metavar="SCENARIO", help=help_text), scenarios)


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Declare ``--set``, the overrides of a scenario's values."""
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="overrides",
        help="override a value, such as measure.iterations=5 (repeatable)",
    )


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Declare the engine."""
    default = "emulation sends packets and needs root (default), simulation simulates them, flow computes rates"
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0], help=default)


def add_changes(parser: argparse.ArgumentParser) -> None:
    """Declare what replaces a scenario's schedulers, values and seed."""
    only = "only this one of the scenario's, by its label, or another by its name (repeatable; testbed list schedulers)"
    option = parser.add_argument("--scheduler", metavar="NAME", action="append", default=[], help=only)
    complete_with(option, schedulers)
    add_overrides(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="instead of the scenario's")


def add_datapath(parser: argparse.ArgumentParser) -> None:
    """Declare what forwards the packets of an emulation."""
    known = "what forwards the packets of an emulation, instead of the scenario's or the best that the machine has"
    parser.add_argument("--datapath", choices=DATAPATHS, help=f"{known}: %(choices)s", metavar="NAME")


def add_run_directories(parser: argparse.ArgumentParser, about: str = "directory of a finished run") -> None:
    """Declare the directories of one or more finished runs."""
    complete_with(parser.add_argument("directory", metavar="DIR", type=Path, nargs="+", help=about), directories)


def positive(text: str) -> int:
    """Parse a whole number from 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1")
    return int(text)
