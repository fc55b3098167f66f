"""``import FILE``: what a workload of SimAI, Chakra or Kineto, or a GOAL schedule, would run as."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import EXIT_OK, BadInputError
from topologies.units import format_size
from workloads.imported.expansion import PHASES
from workloads.imported.files import FORMS, SCHEDULE
from workloads.imported.workload import GROUPS

if TYPE_CHECKING:
    from rich.table import Table

    from workloads.imported.workload import ImportedWorkload, Stretch

NAME = "import"
HELP = "show what a workload of SimAI, Chakra, Kineto or GOAL would run as"
SHOWN = 20
"""Phases in the table; all are in the JSON."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and what it may leave open."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a SimAI workload, Chakra traces (.et), a Kineto trace, a GOAL schedule"
    )
    parser.add_argument("--form", choices=(*FORMS, SCHEDULE), help="the form of FILE (default: by its name)")
    parser.add_argument("--gpus", type=_count, metavar="N", help="GPUs of the job, where the file does not say")
    parser.add_argument("--group", choices=GROUPS, help="ranks that take part in collectives that say none")
    parser.add_argument("--phases", type=_count, default=PHASES, metavar="N", help=f"most phases, roughly ({PHASES})")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the tables")


def run(arguments: argparse.Namespace) -> int:
    """Print the iteration; ``BadInputError`` with the file's line where it cannot be read."""
    from testbed.report.terminal import say, show
    from workloads.imported.errors import WorkloadFileError
    from workloads.imported.files import READERS, form_of

    form = arguments.form or form_of(arguments.file)
    if form == SCHEDULE:
        return _schedule(arguments)
    try:
        workload = READERS[form](arguments.file, arguments.gpus, arguments.group)
    except WorkloadFileError as error:
        raise BadInputError(str(error)) from None
    document = _document(workload, arguments.phases)
    if arguments.json:
        print(json.dumps(document, indent=1))
        return EXIT_OK
    say([_headline(document)])
    show([_totals(document), _phases(document)])
    share = [workload.coverage.said] if workload.coverage.said else []
    say([f"left out: {line}" for line in [*share, *document["left_out"]]] + list(document["notes"]))
    return EXIT_OK


def _schedule(arguments: argparse.Namespace) -> int:
    """Print what a GOAL schedule holds."""
    from testbed.report.terminal import say
    from workloads.imported.errors import WorkloadFileError
    from workloads.imported.goal import read

    try:
        found = read(arguments.file)
    except WorkloadFileError as error:
        raise BadInputError(str(error)) from None
    given = [name for name in ("gpus", "group") if getattr(arguments, name) is not None]
    if given:
        raise BadInputError(f"{arguments.file}: --{given[0]} is given, expected none: a schedule has every operation")
    counts = {kind: sum(each.kind == kind for each in found.operations) for kind in ("calc", "send", "recv")}
    size, compute_s = found.bytes_sent, found.compute_s
    document = {"form": SCHEDULE, "source": found.source, "ranks": found.ranks, **counts}
    document |= {"compute_s": compute_s, "bytes": size}
    if arguments.json:
        print(json.dumps(document, indent=1))
        return EXIT_OK
    what = f"{counts['calc']} computations of {compute_s:.6g} s, {counts['send']} messages of {size} bytes"
    say([f"{found.source} (goal): {found.ranks} ranks, a host each; {what} ({format_size(size)})"])
    return EXIT_OK


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:10]) > 0 and len(text) < 8):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of at least 1")
    return int(text)


def _document(workload: ImportedWorkload, most: int) -> dict[str, Any]:
    from workloads.imported.workload import condensed, totals

    sizes = workload.parallelism
    phases = condensed(workload.stretches, most)
    return {
        "form": workload.form,
        "source": workload.source,
        "gpus": sizes.gpus,
        "groups": {group: sizes.size(group) for group in GROUPS if group != "all"},
        "compute_s": workload.compute_s,
        "collectives": [
            {"kind": kind, "group": group, "count": count, "bytes": size}
            for (kind, group), (count, size) in totals(workload).items()
        ],
        "phases_in_file": len(workload.stretches),
        "phases": [_phase(stretch) for stretch in phases],
        "left_out": list(workload.left_out),
        "communication_left_out": {
            "operators": workload.coverage.left_out,
            "of": workload.coverage.kept + workload.coverage.left_out,
            "seconds": workload.coverage.left_out_s,
            "share": workload.coverage.share_left_out,
        },
        "notes": list(workload.notes),
    }


def _phase(stretch: Stretch) -> dict[str, Any]:
    found: dict[str, Any] = {"compute_s": stretch.compute_s, "overlapped_s": stretch.beside_s}
    if stretch.collective is not None:
        each = stretch.collective
        found |= {"kind": each.kind, "group": each.group, "bytes": each.bytes, "background": each.background}
    return found


def _headline(document: dict[str, Any]) -> str:
    groups = ", ".join(f"{group} {size}" for group, size in document["groups"].items() if size > 1)
    return (
        f"{document['source']} ({document['form']}): {document['gpus']} GPUs; sizes of groups: {groups or 'none'}; "
        f"compute {document['compute_s']:.6g} s an iteration"
    )


def _totals(document: dict[str, Any]) -> Table:
    from testbed.report.fitting import new_table

    table = new_table(
        "collectives of an iteration", left=("collective", "group"), right=("ranks", "count", "bytes", "size")
    )
    sizes = {**document["groups"], "all": document["gpus"]}
    for each in document["collectives"]:
        ranks = str(sizes[each["group"]])
        size = each["bytes"]
        table.add_row(each["kind"], each["group"], ranks, str(each["count"]), f"{size:.0f}", format_size(size))
    return table


def _phases(document: dict[str, Any]) -> Table:
    from testbed.report.fitting import new_table

    phases = document["phases"]
    more = f", the first {SHOWN} of {len(phases)}" if len(phases) > SHOWN else ""
    merged = f", made of {document['phases_in_file']}" if len(phases) < document["phases_in_file"] else ""
    right = ("compute s", "beside it s", "size")
    table = new_table(f"phases{more}{merged}", left=("collective", "group", "waited for"), right=right)
    for each in phases[:SHOWN]:
        waited = "" if "kind" not in each else "at the end" if each["background"] else "at once"
        table.add_row(
            each.get("kind", "-"),
            each.get("group", "-"),
            waited,
            f"{each['compute_s']:.6f}",
            f"{each['overlapped_s']:.6f}",
            format_size(each["bytes"]) if "kind" in each else "-",
        )
    return table
