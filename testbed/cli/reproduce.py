"""``testbed reproduce``: an experiment of a paper, its numbers beside those found here."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence

from testbed.errors import EXIT_OK, BadInputError
from testbed.progress import Progress
from testbed.report.tables import MISSING, new_table, show
from testbed.reproduce.experiment import Column, Experiment, Row, Settings, find, names

NAME = "reproduce"
HELP = "an experiment of a paper, beside the paper's own numbers; without NAME: which there are"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the experiment and what can be changed about it."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="the experiment")
    parser.add_argument("--cases", type=int, metavar="N", help="how many cases, instead of the paper's number")
    parser.add_argument("--seed", type=int, metavar="N", default=1, help="which draw of cases (default: 1)")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (default: as many as cores)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of the experiment, or the list of experiments."""
    if arguments.name is None:
        _list(arguments.json)
        return EXIT_OK
    experiment = find(arguments.name)
    settings = _settings(arguments, experiment)
    with Progress(quiet=False) as progress:
        rows = experiment.run(settings, progress)
    if arguments.json:
        print(json.dumps(document(arguments.name, command(arguments), rows), indent=1))
        return EXIT_OK
    print(f"{arguments.name}: {experiment.SUMMARY} ({experiment.SOURCE}); {settings.cases} cases, seed {settings.seed}")
    _show(experiment.COLUMNS, rows)
    return EXIT_OK


def _settings(arguments: argparse.Namespace, experiment: Experiment) -> Settings:
    for option, value in (("--cases", arguments.cases), ("--jobs", arguments.jobs)):
        if value is not None and value < 1:
            raise BadInputError(f"{option} must be at least 1, not {value}")
    cases = experiment.CASES if arguments.cases is None else arguments.cases
    return Settings(cases, arguments.seed, arguments.jobs or len(os.sched_getaffinity(0)))


def command(arguments: argparse.Namespace) -> str:
    """The command that gives the same rows again."""
    words = ["python -m testbed reproduce", arguments.name]
    words += [] if arguments.cases is None else [f"--cases {arguments.cases}"]
    words += [] if arguments.seed == 1 else [f"--seed {arguments.seed}"]
    return " ".join(words)


def document(name: str, again: str, rows: Sequence[Row]) -> dict[str, object]:
    """Return what ``--json`` prints."""
    listed = [{"label": row.label, "paper": dict(row.paper), "here": dict(row.here), "note": row.note} for row in rows]
    return {"name": name, "command": again, "rows": listed}


def _list(as_json: bool) -> None:
    found = {name: find(name) for name in names()}
    if as_json:
        listed = [{"name": name, "summary": one.SUMMARY, "source": one.SOURCE} for name, one in found.items()]
        print(json.dumps({"experiments": listed}, indent=1))
        return
    table = new_table("experiments", left=("name", "what"), last="source")
    for name, one in found.items():
        table.add_row(name, one.SUMMARY, one.SOURCE)
    show([table])


def _show(columns: Sequence[Column], rows: Sequence[Row]) -> None:
    table = new_table("", left=("",), right=tuple(column.title for column in columns))
    for row in rows:
        table.add_row(row.label, *(_cell(column, row) for column in columns))
    show([table])
    for row in rows:
        if row.note:
            print(f"{row.label}: {row.note}")


def _cell(column: Column, row: Row) -> str:
    value = (row.paper if column.paper else row.here).get(column.key)
    return MISSING if value is None else column.form(value)
