"""The outcomes of the jobs of one cluster manager, and what its metrics are computed from. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workloads.managers.account import JobOutcome


@dataclass(frozen=True)
class Spread:
    """Values over jobs; each number of them is 0 where there are none."""

    values: Sequence[float]

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.values)) if self.values else 0.0

    def percentile(self, share: int) -> float:
        """Their ``share``th percentile."""
        return float(np.percentile(self.values, share)) if self.values else 0.0


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of the jobs of one manager; times in seconds, of the jobs that ended."""

    jobs: Sequence[JobOutcome]

    @cached_property
    def ended(self) -> list[JobOutcome]:
        """Jobs that ended, however they did."""
        return [job for job in self.jobs if job.end_s is not None]

    @property
    def unsuccessful(self) -> list[JobOutcome]:
        """Jobs that ended, but did not pass."""
        return [job for job in self.ended if job.status != "passed"]

    @cached_property
    def jct_s(self) -> Spread:
        """From submission to end."""
        return Spread([job.jct_s or 0.0 for job in self.ended])

    @cached_property
    def queue_s(self) -> Spread:
        """Time in which the job held no GPUs."""
        return Spread([queued_s(job) for job in self.ended])

    @cached_property
    def slowdown(self) -> Spread:
        """JCT over the time that the job takes alone."""
        return Spread([(job.jct_s or 0.0) / job.alone_s for job in self.ended if job.alone_s > 0])

    def wait_s(self, cause: str) -> Spread:
        """Time without GPUs for a ``cause`` of :data:`workloads.managers.ledger.CAUSES`."""
        return Spread([job.waits.get(cause, 0.0) for job in self.ended])

    @property
    def makespan_s(self) -> float:
        """From the first submission to the last end."""
        last = max((job.end_s or 0.0 for job in self.ended), default=0.0)
        return last - min((job.submit_s for job in self.jobs), default=0.0) if self.ended else 0.0

    @property
    def preemptions(self) -> int:
        """Times that jobs were stopped."""
        return sum(job.preemptions for job in self.jobs)

    @property
    def preempted_share(self) -> float:
        """Preemptions over jobs that started."""
        started = sum(job.start_s is not None for job in self.jobs)
        return self.preemptions / started if started else 0.0

    @property
    def unsuccessful_gpu_share(self) -> float:
        """Share of the GPU time of all jobs that ended which the unsuccessful ones used."""
        whole = sum(job.allocated_gpu_s for job in self.ended)
        return sum(job.allocated_gpu_s for job in self.unsuccessful) / whole if whole > 0 else 0.0


def queued_s(job: JobOutcome) -> float:
    """Seconds of waiting of a job that has ended: before it started, and while it was preempted."""
    if job.end_s is None:
        raise ValueError(f"job '{job.name}' has not ended")
    return max(0.0, job.end_s - job.submit_s - job.held_s)
