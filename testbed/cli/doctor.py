"""``testbed doctor``: what this machine has, what it lacks, and what follows from that."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from rich.console import Console
from rich.table import Table

from testbed.capabilities import Finding, findings
from testbed.errors import EXIT_CANNOT, EXIT_OK
from testbed.scale import MTU, PACKET_HOPS_PER_S
from topologies.shaping import TCP_IP_HEADER
from topologies.units import format_rate

NAME: Final = "doctor"
EXAMPLE_NICS: Final = 48
EXAMPLE_SWITCHES: Final = 3
HELP: Final = "say what this machine has, what it lacks and what follows; changes nothing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``doctor``."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; status 3 where this machine, or this user, cannot run emulations."""
    found = findings()
    stopper = next((finding for finding in found if finding.blocking), None)
    if arguments.json:
        print(json.dumps(_document(found, stopper), indent=2))
    else:
        console = Console(highlight=False)
        console.print(_table(found))
        console.print(stopper.remedy if stopper else f"This machine can run emulations. {_budget()}", soft_wrap=True)
    return EXIT_CANNOT if stopper else EXIT_OK


def _budget() -> str:
    """What it can carry, from the budget that ``scale: auto`` plans with."""
    rate = PACKET_HOPS_PER_S / EXAMPLE_NICS / EXAMPLE_SWITCHES * 8 * (MTU - TCP_IP_HEADER)
    return (
        f"Budget: {PACKET_HOPS_PER_S:,.0f} packets x switches per second, "
        f"such as {EXAMPLE_NICS} NICs at {format_rate(rate)} over {EXAMPLE_SWITCHES} switches."
    )


def _document(found: Sequence[Finding], stopper: Finding | None) -> dict[str, object]:
    return {
        "schema_version": 1,
        "can_emulate": stopper is None,
        "reason": stopper.remedy if stopper else "",
        "budget_packet_hops_per_s": PACKET_HOPS_PER_S,
        "findings": [{key: value for key, value in asdict(finding).items() if key != "remedy"} for finding in found],
    }


def _table(found: Sequence[Finding]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "what", "found", "consequence"):
        table.add_column(heading, overflow="fold")
    for finding in found:
        table.add_row(_mark(finding), finding.name, finding.detail, finding.consequence)
    return table


def _mark(finding: Finding) -> str:
    if finding.present is None:
        return "unknown"
    if finding.present:
        return "[green]has[/]"
    return "[red]lacks[/]" if finding.required else "[yellow]lacks[/]"
