"""What failures have cost jobs: times they stood still, restarts, iterations repeated, GPU hours. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from testbed.results.record import RunRecord
from workloads.job import Job

OUTAGES: Final = (
    ("count", "", "times that failures stopped it: it could not communicate, or a host of it failed"),
    ("lost_s", "s", "how long it stood still then, altogether"),
    ("restarts", "", "times that it ended after the timeout, or with its host, and started again"),
    ("repeated", "", "iterations that it made again, those since the last checkpoint"),
    ("gpu_hours", "", "GPU hours for which it stood still"),
)
"""Key, unit and meaning of each."""


def outages_of(record: RunRecord, jobs: Sequence[Job]) -> Mapping[str, float]:
    """The values of :data:`OUTAGES` of ``jobs`` together, by key; nothing in runs in which nothing was to fail."""
    rows = record.environment.get("outages")
    if not isinstance(rows, Sequence):
        return {}
    gpus = {job.name: len(job.gpus) for job in jobs}
    found = {key: 0.0 for key, _, _ in OUTAGES}
    for row in (row for row in rows if row["job"] in gpus):
        end_s = record.duration_s if row["until_s"] is None else row["until_s"]
        lost_s = max(0.0, min(end_s, record.duration_s) - row["from_s"])
        found["count"] += 1
        found["lost_s"] += lost_s
        found["restarts"] += row["ended_s"] is not None and row["until_s"] is not None
        found["repeated"] += row["repeated"]
        found["gpu_hours"] += lost_s * gpus[row["job"]] / 3600
    return found


def outage_spans(record: RunRecord, job: str) -> list[tuple[float, float]]:
    """When failures stopped ``job``: from, until, seconds of the run."""
    rows = record.environment.get("outages")
    return [
        (row["from_s"], record.duration_s if row["until_s"] is None else row["until_s"])
        for row in (rows if isinstance(rows, Sequence) else ())
        if row["job"] == job
    ]
