"""``compare DIR...``: tables and plots of runs side by side."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.errors import EXIT_OK, RunFailedError
from testbed.metrics.comparison import side_by_side
from testbed.results.finished_run import summaries_of
from testbed.results.run_directory import open_all

NAME = "compare"
HELP = "tables and plots of runs side by side"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, nargs="+", help="directory of a finished run")
    parser.add_argument("--out", metavar="DIR", type=Path, help="where the plots go (default: beside the first run)")
    parser.add_argument("--json", action="store_true", help="print one JSON document and draw nothing")


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison; without ``--json`` also write its plots."""
    summaries = summaries_of(arguments.directory)
    for directory in open_all(arguments.directory):
        if doubt := directory.doubt():
            print(doubt, file=sys.stderr)
    document = side_by_side(summaries)
    if arguments.json:
        print(json.dumps(document, indent=1))
        return EXIT_OK
    from testbed.report.tables import comparison_tables, show

    show(comparison_tables(document))
    first = arguments.directory[0].resolve()
    out = arguments.out or first.parent / f"compare-{time.strftime('%Y%m%d-%H%M%S')}"
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
