"""Tiresias: jobs of its simulator (Gu et al., NSDI 2019; ``SymbioticLab/Tiresias``, Apache-2.0). Times are in
seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from topologies.table import read_rows
from workloads.traces.gathering import Gathering
from workloads.traces.trace import Trace

REQUIRED: Final = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "interval")


def read(path: Path) -> Trace:
    """Read a table such as ``60_job.csv``."""
    found = Gathering(path)
    for row in read_rows(path, REQUIRED, found.skipped):
        found.add(
            row.text("job_id") or f"line-{row.line}",
            row.number("submit_time"),
            row.number("duration"),
            row.count("num_gpu"),
            model=row.text("model_name"),
        )
    found.notes.append("Tiresias's tables say nothing of users, hosts and fates: every job counts as passed")
    return found.trace(f"tiresias-{path.stem}")
