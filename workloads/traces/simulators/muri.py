"""Muri: jobs of its simulator (Zhao et al., SIGCOMM 2022; ``Rivendile/Muri``, Apache-2.0).

Times are in milliseconds. A job runs its ``iterations`` at ``iteration_time`` each, which is what the authors'
simulator does; their column ``duration`` is that product, rounded. ``resource_time_0`` and so on are its stages, in
milliseconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from topologies.table import Row, read_rows
from workloads.traces.gathering import Gathering, bounded
from workloads.traces.trace import Trace

REQUIRED: Final = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "iteration_time")
OWN_COLUMNS: Final = ("iteration_time", "resource_time_0", "batch_size")
"""Columns that tell Muri's tables from those of Tiresias, whose times are seconds."""
MILLISECOND: Final = 1e-3


def read(path: Path) -> Trace:
    """Read one of ``trace-data/trace*.csv``."""
    found = Gathering(path)
    for row in read_rows(path, REQUIRED, found.skipped):
        submitted = row.number("submit_time")
        found.add(
            row.text("job_id") or f"line-{row.line}",
            None if submitted is None else submitted * MILLISECOND,
            _duration_s(row),
            row.count("num_gpu"),
            model=row.text("model_name"),
        )
    found.notes.append("Muri's jobs run iterations x iteration_time; users, hosts and fates are not in its traces")
    return found.trace(f"muri-{path.stem}")


def _duration_s(row: Row) -> float | None:
    """Seconds of all iterations; ``duration`` and ``interval`` are not used, but a wrong one is damage all the same."""
    iterations, each, *_ = map(row.number, ("iterations", "iteration_time", "duration", "interval"))
    if iterations is None or each is None:
        return None
    return bounded(row, "iterations x iteration_time", iterations * each) * MILLISECOND
