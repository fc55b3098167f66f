"""The ITP traces: jobs of ten Microsoft clusters in two months of 2021 (``microsoft/elasticflow-traces``, MIT).

Columns ``job_id,submission_time,duration,num_gpu``, times in seconds. A folder is read as one
trace of all its clusters: their times count from the same moment (2021-03-04).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from topologies.table import TraceError, read_rows
from workloads.traces.gathering import Gathering
from workloads.traces.trace import Trace

REQUIRED: Final = ("job_id", "submission_time", "duration", "num_gpu")

_NOTE: Final = "the ITP traces say nothing of users, models, hosts and fates: every job counts as passed"


def read(path: Path) -> Trace:
    """Read one cluster's file, or all ``*.csv`` of a folder; the virtual cluster is the file's name."""
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if not files:
        raise TraceError(str(path), None, "no CSV file in this folder", "cluster01.csv and so on")
    found = Gathering(path)
    for file in files:
        _read(file, found)
    found.notes.append(_NOTE)
    return found.trace(path.stem)


def _read(file: Path, found: Gathering) -> None:
    for row in read_rows(file, REQUIRED, found.skipped):
        found.add(
            row.text("job_id") or f"{file.stem}-{row.line}",
            row.number("submission_time"),
            row.number("duration"),
            row.count("num_gpu"),
            virtual_cluster=file.stem,
        )
