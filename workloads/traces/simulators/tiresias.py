"""Tiresias: jobs of its simulator (Gu et al., NSDI 2019; ``SymbioticLab/Tiresias``, Apache-2.0). Times are in
seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from topologies.table import TraceError, comments_of, first_line, lines_of, read_rows, reading
from workloads.traces.gathering import Gathering
from workloads.traces.simulators import muri
from workloads.traces.trace import Trace

REQUIRED: Final = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "interval")


def read(path: Path) -> Trace:
    """Read a table such as ``60_job.csv``."""
    found = Gathering(path)
    _require_seconds(path)
    for row in read_rows(path, REQUIRED, found.skipped):
        for column in ("iterations", "interval"):
            row.number(column)  # not used, but a wrong one is damage all the same
        found.add(
            row.text("job_id") or f"line-{row.line}",
            row.number("submit_time"),
            row.number("duration"),
            row.count("num_gpu"),
            model=row.text("model_name"),
        )
    found.notes.append("Tiresias's tables say nothing of users, hosts and fates: every job counts as passed")
    return found.trace(f"tiresias-{path.stem}")


def _require_seconds(path: Path) -> None:
    """Raise :class:`TraceError` for a table of Muri's: its milliseconds would be taken for seconds."""
    header = first_line(path)
    own = next((column for column in muri.OWN_COLUMNS if column in header), None)
    if own is None:
        return
    missing = ", ".join(column for column in muri.REQUIRED if column not in header)
    but = f", but has no {missing}" if missing else ""
    lacks = f"with the column {own} it is a table of Muri's, in milliseconds{but}"
    expected = f"the columns {', '.join(muri.REQUIRED)}" if missing else "the format muri"
    raise TraceError(str(path), _header_line(path), lacks, expected)


def _header_line(path: Path) -> int:
    with reading(path) as file:
        above, _ = comments_of(lines_of(file, str(path)), str(path))
    return len(above) + 1
