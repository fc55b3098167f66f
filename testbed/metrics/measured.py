"""What the metrics of the catalogue are computed from: a run and its jobs as measured. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from controller.decision import Decision
from testbed.metrics.job_metrics import (
    CAUSES,
    JobMetrics,
    intensity_of,
    profile_of,
)
from testbed.metrics.losses import Alone, Loss, loss_of, total_loss
from testbed.metrics.outcomes import queued_s
from testbed.results.record import RunRecord
from workloads.managers.account import JobOutcome


@dataclass(frozen=True, slots=True)
class MeasuredJob:
    """A job of a run: its ``metrics``, and the ``decision`` that was last about it.

    ``level``: see :class:`testbed.metrics.job_metrics.MeaningfulLevels`. ``alone``: its analytic times; None under a
    manager, and where the switches chose its paths. ``outcome`` and ``stints``: its outcome under a manager, and the
    names of its stints in the files.
    """

    metrics: JobMetrics
    decision: Decision
    level: int | None
    alone: Alone | None = None
    outcome: JobOutcome | None = None
    stints: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that the scenario gave it; a stint's own may have a number."""
        return self.metrics.job.name if self.outcome is None else self.outcome.name

    @property
    def intensity(self) -> float | None:
        """See :func:`testbed.metrics.job_metrics.intensity_of`."""
        return intensity_of(self.metrics.job, self.decision)

    @property
    def profile(self) -> str | None:
        """See :func:`testbed.metrics.job_metrics.profile_of`."""
        return profile_of(self.metrics.job, self.decision)

    @property
    def loss(self) -> Loss | None:
        """What contention cost it; None where that is unknown."""
        times = self.metrics.times
        return loss_of(times.mean if times else None, self.metrics.utilization, self.alone) if self.alone else None

    @property
    def placed(self) -> JobOutcome:
        """Its outcome under its manager; ``ValueError`` without one."""
        if self.outcome is None:
            raise ValueError(f"no manager placed job '{self.name}'")
        return self.outcome

    @property
    def queue_s(self) -> float | None:
        """Seconds without GPUs of a job under a manager; None if it has not ended."""
        return None if self.placed.end_s is None else queued_s(self.placed)


@dataclass(frozen=True)
class MeasuredRun:
    """A run: what was recorded, its jobs, and GPU time summed over them (s); ``manager``: its manager's metrics."""

    record: RunRecord
    jobs: tuple[MeasuredJob, ...]
    gpu_utilization: float
    allocated_s: float
    idle_s: Mapping[str, float]
    manager: Mapping[str, Any] | None = None

    @property
    def managed(self) -> bool:
        """Whether a manager placed the jobs."""
        return self.manager is not None

    @property
    def work_flop(self) -> float:
        """FLOPs of all jobs in the window."""
        return sum(job.metrics.work_flop for job in self.jobs)

    @cached_property
    def loss(self) -> dict[str, float] | None:
        """See :func:`testbed.metrics.losses.total_loss`."""
        return total_loss([(job.metrics, job.loss) for job in self.jobs])

    def with_idle_holders(self, held_s: float) -> MeasuredRun:
        """The run with ``held_s`` more GPU-seconds of jobs that hold GPUs but wait for more: those GPUs are idle."""
        busy, allocated = self.gpu_utilization * self.allocated_s, self.allocated_s + held_s
        return replace(
            self,
            gpu_utilization=busy / allocated if allocated > 0 else 0.0,
            allocated_s=allocated,
            idle_s={**self.idle_s, "start": self.idle_s["start"] + held_s},
        )


def measured_run(record: RunRecord, jobs: Iterable[MeasuredJob], shared_s: float = 0.0) -> MeasuredRun:
    """Sum up a run; ``shared_s`` of the jobs' GPU time is in it twice."""
    jobs = tuple(jobs)
    metrics = [job.metrics for job in jobs]
    allocated = sum(each.allocated_s for each in metrics) - shared_s
    busy = sum(each.busy_s for each in metrics)
    return MeasuredRun(
        record=record,
        jobs=jobs,
        gpu_utilization=min(1.0, busy / allocated) if allocated > 0 else 0.0,
        allocated_s=allocated,
        idle_s={cause: sum(each.idle_s[cause] for each in metrics) for cause in CAUSES},
    )
