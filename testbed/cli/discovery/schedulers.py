"""``testbed schedulers``, or ``testbed list schedulers``: every scheduler, what it decides, and its source."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from testbed.errors import EXIT_OK
from testbed.metrics.formats import MISSING

if TYPE_CHECKING:
    from rich.table import Table

    from controller.schedulers.registry import Description

NAME = "schedulers"
HELP = "list the schedulers, those of other packages included: what each decides, and its source"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the output format."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")


def run(arguments: argparse.Namespace) -> int:
    """Print the list; a scheduler that cannot be loaded is a row with the reason."""
    from controller.schedulers.registry import descriptions
    from testbed.report.terminal import show

    found = descriptions()
    if arguments.json:
        print(json.dumps(document(found), indent=2))
    else:
        show([_table(found)])
    return EXIT_OK


def document(found: Sequence[Description]) -> dict[str, object]:
    """The list as one JSON-ready document."""
    return {"schema_version": 1, "schedulers": [asdict(scheduler) for scheduler in found]}


def _table(found: Sequence[Description]) -> Table:
    from testbed.report.fitting import new_table

    table = new_table("schedulers", left=("name", "decides"), optional=("hears",))
    table.add_column("hears")
    table.add_column("source", min_width=18)
    table.add_column("summary", min_width=28)
    for scheduler in found:
        decides, events = ", ".join(scheduler.decides), _heard(scheduler.events)
        cells = (scheduler.name, decides, events, scheduler.source, _what_it_is(scheduler))
        table.add_row(*(cell or MISSING for cell in cells))
    return table


_KINDS: Final = {
    "JobArrived": "jobs",
    "JobDeparted": "jobs",
    "JobProfiled": "profiles",
    "StepStarted": "steps",
    "ThroughputMeasured": "time",
    "StepEnded": "steps",
}


def _heard(events: Sequence[str]) -> str:
    """The events, one word per kind."""
    return ", ".join(dict.fromkeys(_KINDS.get(event, event) for event in events))


def _what_it_is(scheduler: Description) -> str:
    said = f"cannot be used: {scheduler.problem}" if scheduler.problem else scheduler.summary
    return f"{said} (package {scheduler.package})" if scheduler.package else said
