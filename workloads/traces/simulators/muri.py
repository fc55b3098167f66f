"""Muri: jobs of its simulator (Zhao et al., SIGCOMM 2022; ``Rivendile/Muri``, Apache-2.0).

Times are in milliseconds. A job runs its ``iterations`` at ``iteration_time`` each, which is what the authors'
simulator does; their column ``duration`` is that product, rounded. ``resource_time_0`` and so on are its stages, in
milliseconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from topologies.table import read_rows
from workloads.traces.gathering import Gathering
from workloads.traces.trace import Trace

REQUIRED: Final = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "iteration_time")
MILLISECOND: Final = 1e-3


def read(path: Path) -> Trace:
    """Read one of ``trace-data/trace*.csv``."""
    found = Gathering(path)
    for row in read_rows(path, REQUIRED, found.skipped):
        submitted, iterations, each = (row.number(name) for name in ("submit_time", "iterations", "iteration_time"))
        found.add(
            row.text("job_id") or f"line-{row.line}",
            None if submitted is None else submitted * MILLISECOND,
            None if iterations is None or each is None else iterations * each * MILLISECOND,
            row.count("num_gpu"),
            model=row.text("model_name"),
        )
    found.notes.append("Muri's jobs run iterations x iteration_time; users, hosts and fates are not in its traces")
    return found.trace(f"muri-{path.stem}")
