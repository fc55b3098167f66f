"""``testbed list WHAT``: what a scenario may name, one line each."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from testbed.errors import EXIT_OK

NAME = "list"
HELP = "list what a scenario may name: scenarios, models, schedulers, managers, collectives, fabrics"
KINDS: Final = ("scenarios", "models", "schedulers", "managers", "collectives", "fabrics")
_RIGHT: Final = frozenset({"jobs", "parameters", "batch", "passes"})
_OPTIONAL: Final = ("sources", "package", "hears", "schedulers", "passes", "jobs", "batch", "queue", "placer")
"""Columns that a narrow terminal leaves out, the least important first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what to list, and the output format."""
    parser.add_argument("what", metavar="WHAT", choices=KINDS, help=f"one of {', '.join(KINDS)}")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")


def run(arguments: argparse.Namespace) -> int:
    """Print the list; schedulers as ``testbed schedulers`` does."""
    if arguments.what == "schedulers":
        from testbed.cli.discovery import schedulers

        return schedulers.run(arguments)
    from testbed.cli.discovery.entries import ENTRIES

    found = ENTRIES[arguments.what]()
    if arguments.json:
        print(json.dumps({"schema_version": 1, **found}, indent=2))
    else:
        _show(found)
    return EXIT_OK


def _show(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """A table for each list; its columns are the keys of the entries, texts that may wrap last."""
    from testbed.metrics.formats import MISSING
    from testbed.report.fitting import new_table
    from testbed.report.terminal import show

    for title, entries in found.items():
        first, *others = entries[0]
        table = new_table(title, left=(first,), optional=_OPTIONAL)
        for key in others:
            wide = {"min_width": 28} if key == "summary" else {}
            table.add_column(key, justify="right" if key in _RIGHT else "left", **wide)
        for entry in entries:
            table.add_row(*(_cell(value) or MISSING for value in entry.values()))
        show([table])


def _cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)
