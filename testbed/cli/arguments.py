"""Arguments that several verbs take."""

from __future__ import annotations

import argparse

from topologies.datapath import DATAPATHS


def add_scenario(parser: argparse.ArgumentParser) -> None:
    """Declare the scenario."""
    parser.add_argument("scenario", metavar="SCENARIO", help="a file, or the name of a bundled scenario")


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


def add_changes(parser: argparse.ArgumentParser) -> None:
    """Declare what replaces a scenario's schedulers, values and seed."""
    parser.add_argument("--scheduler", metavar="NAME", action="append", default=[], help="instead of the scenario's")
    add_overrides(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="instead of the scenario's")


def add_datapath(parser: argparse.ArgumentParser) -> None:
    """Declare what forwards the packets of an emulation."""
    known = "what forwards the packets of an emulation, instead of the scenario's or the best that the machine has"
    parser.add_argument("--datapath", choices=DATAPATHS, help=f"{known}: %(choices)s", metavar="NAME")


def positive(text: str) -> int:
    """Parse a whole number from 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1")
    return int(text)
