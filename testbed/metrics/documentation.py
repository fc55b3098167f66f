"""The catalogue as tables of the documentation: ``python -m testbed.metrics.documentation [--write PAGE ...]``.

Prints the tables; with ``--write`` puts each into those pages between its markers, ``<!-- metrics -->`` and
``<!-- /metrics -->``, ``<!-- check names -->`` and ``<!-- /check names -->``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from testbed.metrics.catalogue import COMPARISON, JOB, RUN, check_names
from testbed.metrics.managers.manager_metrics import MANAGER, OUTCOMES
from testbed.metrics.metric import Metric

SCOPES: Final[tuple[tuple[str, tuple[Metric[Any], ...]], ...]] = (
    ("A run: `runs[]`", RUN),
    ("A job of a run: `runs[].jobs[]`", JOB),
    ("The manager of a run: `runs[].manager`", (*OUTCOMES, *MANAGER)),
    ("A run against the baseline: `comparison.<scheduler>`", COMPARISON),
)


def metrics_text() -> str:
    """Every metric of ``summary.json``, a table per scope."""
    return "\n\n".join("\n".join([f"**{title}**", "", *table(metrics)]) for title, metrics in SCOPES)


def check_names_text() -> str:
    """The names that checks may use, of runs and of jobs."""
    rows = zip_longest(check_names(RUN), check_names(JOB))
    cells = (" | ".join(f"`{name}`" if name else "" for name in row) for row in rows)
    return "\n".join(["| of a run | of a job |", "|---|---|", *(f"| {row} |" for row in cells)])


def with_tables(page: str) -> str:
    """The text of a page with today's tables between its markers; ``ValueError`` if it has none."""
    parts = {"metrics": metrics_text(), "check names": check_names_text()}
    found = [name for name in parts if f"<!-- {name} -->" in page]
    if not found:
        raise ValueError("no marker <!-- metrics --> or <!-- check names --> in it")
    for name in found:
        before, _, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if not end:
            raise ValueError(f"no marker <!-- /{name} --> after <!-- {name} -->")
        page = f"{before}<!-- {name} -->\n\n{parts[name]}\n\n{end}{after}"
    return page


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or write them to the pages that are named."""
    parser = argparse.ArgumentParser(prog="python -m testbed.metrics.documentation", description=__doc__)
    parser.add_argument("--write", metavar="PAGE", type=Path, nargs="+", default=[], help="pages with markers")
    pages = parser.parse_args(arguments).write
    if not pages:
        print(f"{metrics_text()}\n\n{check_names_text()}")
    for page in pages:
        try:
            page.write_text(with_tables(page.read_text("utf-8")), "utf-8")
        except (OSError, ValueError) as error:
            print(f"{page}: {error}", file=sys.stderr)
            return 2
    return 0


def table(metrics: Sequence[Metric[Any]]) -> Iterator[str]:
    """The lines of a table with a row per metric."""
    yield "| key | unit | meaning |"
    yield "|---|---|---|"
    for metric in metrics:
        managed = " (with a manager)" if metric.managed else ""
        yield f"| `{metric.key}` | {metric.unit} | {metric.meaning}{managed} |"


if __name__ == "__main__":
    sys.exit(main())
