"""What failed in a run, and which jobs felt it, as a table of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from testbed.metrics.formats import seconds
from testbed.report.page.tables_view import Cell, table
from testbed.report.tables import marked
from testbed.results.failed_parts import failed_parts, stopped_jobs
from testbed.results.record import RunRecord

MOST_ROWS: Final = 200
"""Rows of a scheduler."""
_HEADS: Final = (
    ("part", "a link, NIC, switch or host"),
    ("scheduler", ""),
    ("failed s", "when it failed"),
    ("worked again s", "when it worked again, or the run ended"),
    ("jobs that stood still", "how long each did meanwhile; + if it had to start again"),
)


def failures_table(records: Sequence[RunRecord]) -> dict[str, Any] | None:
    """A row for each part that failed in each run; None if none did."""
    rows = [row for record in records for row in _rows(record)]
    note = "Other jobs went on, over other paths or the other port of a NIC, and may have been slower."
    return table("failures", "What failed, and which jobs it stopped", _HEADS, 2, rows, note) if rows else None


def _rows(record: RunRecord) -> list[list[Cell]]:
    name, stopped = marked(record.scheduler, record.fidelity.verdict), stopped_jobs(record)
    found: list[list[Cell]] = []
    for part in failed_parts(record)[:MOST_ROWS]:
        felt = [(job, shared_s) for job in stopped if (shared_s := part.shared_s(job)) > 0]
        words = ", ".join(f"{job.name} {shared_s:.1f} s{' +' if job.restarted else ''}" for job, shared_s in felt)
        times: list[Cell] = [[seconds(part.from_s), part.from_s], [seconds(part.until_s), part.until_s]]
        found.append([part.name, name, *times, words or "none"])
    return found
