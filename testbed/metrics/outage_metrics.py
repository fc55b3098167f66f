"""What failures have cost jobs: times they stood still, restarts, iterations repeated, GPU hours. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from testbed.results.failed_parts import stopped_jobs
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


@dataclass(frozen=True, slots=True)
class JobOutages:
    """When failures stopped a job (from, until, in seconds of the run), restarts and iterations that it made again."""

    spans: tuple[tuple[float, float], ...] = ()
    restarts: int = 0
    repeated: int = 0

    @property
    def lost_s(self) -> float:
        """How long it stood still."""
        return sum(end - begin for begin, end in self.spans)


def outages_in(record: RunRecord, job: str) -> JobOutages:
    """What became of ``job`` (or a stint of one) in a run."""
    own = [span for span in stopped_jobs(record) if span.name == job]
    return JobOutages(
        tuple((span.from_s, span.until_s) for span in own),
        sum(span.restarted for span in own),
        sum(span.repeated for span in own),
    )


def outages_of(record: RunRecord, jobs: Sequence[Job]) -> Mapping[str, float]:
    """The values of :data:`OUTAGES` of ``jobs`` together, by key; nothing in runs in which nothing was to fail."""
    if "outages" not in record.environment:
        return {}
    found = [(outages_in(record, job.name), len(job.gpus)) for job in jobs]
    return {
        "count": sum(len(each.spans) for each, _ in found),
        "lost_s": sum(each.lost_s for each, _ in found),
        "restarts": sum(each.restarts for each, _ in found),
        "repeated": sum(each.repeated for each, _ in found),
        "gpu_hours": sum(each.lost_s * gpus for each, gpus in found) / 3600,
    }
