"""``compare DIR...``: tables, and a page with plots, of runs side by side."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.cli.arguments import add_run_directories
from testbed.errors import EXIT_OK, RunFailedError
from testbed.machine.distribution import has_extra

NAME = "compare"
HELP = "tables and plots of runs side by side"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run_directories(parser, "directory of a finished run, or of a sweep")
    parser.add_argument("--out", metavar="DIR", type=Path, help="where the page goes (default: beside the first run)")
    parser.add_argument("--json", action="store_true", help="print one JSON document and write nothing")


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison; without ``--json`` also write its page and plots."""
    from testbed.metrics.comparison import side_by_side
    from testbed.report.comparison.compared_runs import collect

    compared = collect(arguments.directory)
    for each in compared.runs:
        if doubt := each.directory.doubt():
            print(doubt, file=sys.stderr)
    summaries = {each.label: each.summary for each in compared.runs}
    document = side_by_side(summaries, {each.label: each.inputs for each in compared.runs})
    if arguments.json:
        print(json.dumps(document, indent=1))
        return EXIT_OK
    from testbed.report.comparison import page
    from testbed.report.tables import comparison_tables, show, unproven
    from testbed.report.terminal import say

    show(comparison_tables(document))
    say(document["remarks"], style="yellow")
    say(unproven(document))
    first = arguments.directory[0].resolve()
    out = arguments.out or first.parent / f"compare-{time.strftime('%Y%m%d-%H%M%S')}"
    print(page.write(compared, out, "comparison"))
    if has_extra("plots"):
        print(_draw(summaries, out))
    return EXIT_OK


def _draw(summaries: Mapping[str, Mapping[str, Any]], out: Path) -> Path:
    from testbed.report.plots import idle_by_cause, svg

    target = out / "idle_by_cause.svg"
    try:
        out.mkdir(parents=True, exist_ok=True)
        target.write_text(svg(idle_by_cause(summaries)), "utf-8")
    except OSError as error:
        raise RunFailedError(f"{target}: cannot be written: {error.strerror or error}") from error
    return target
