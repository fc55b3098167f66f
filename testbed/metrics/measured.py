"""What the metrics of the catalogue are computed from: a run and its jobs as measured. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from controller.decision import Decision
from testbed.experiment.experiment import Experiment
from testbed.experiment.network_model import PER_FLOW
from testbed.metrics.job_metrics import (
    CAUSES,
    JobMetrics,
    decision_for,
    intensity_of,
    profile_of,
)
from testbed.metrics.losses import Loss, total_loss
from testbed.metrics.managers.outcomes import queued_s
from testbed.metrics.network.message_metrics import MessageMetrics, message_metrics, messages_by_job
from testbed.results.record import RunRecord
from workloads.analysis import isolated
from workloads.job import Job
from workloads.managers.account import JobOutcome

_SHARE: Final = "share"


@dataclass(frozen=True, slots=True)
class AnalyticTimes:
    """Iteration time (s) of a job alone by formula: ``ideal_s`` on no shared link, ``decided_s`` on its decided paths.

    No jitter, no stragglers, every phase as fast as its most loaded link.
    """

    ideal_s: float
    decided_s: float


def analytic_times(job: Job, record: RunRecord, experiment: Experiment) -> AnalyticTimes | None:
    """The job's times under the decision in force; None if the switches chose its paths, or for a program."""
    if job.external is not None or experiment.spreads:
        return None
    decision = decision_for(record, job)
    paths = decision.paths
    if any(flow.id not in paths or flow.id in decision.hashed for flow in job.flows):
        return None
    ideal = isolated(job, experiment.fabric)
    decided = isolated(job, experiment.fabric, {flow.id: paths[flow.id] for flow in job.flows})
    return AnalyticTimes(ideal.iteration_s, decided.iteration_s)


@dataclass(frozen=True, slots=True)
class MeasuredJob:
    """A job of a run: its ``metrics``, and the ``decision`` that was last about it.

    ``level``: see :class:`testbed.metrics.job_metrics.MeaningfulLevels`. ``loss``: why its GPUs were idle; None where
    that is unknown. ``alone``: its times by formula; None under a manager, and where the switches chose its paths.
    ``outcome`` and ``stints``: its outcome under a manager, and the names of its stints in the files. ``messages``:
    those that count, None if there are none. ``packets``: what is counted of them at line rate, else nothing.
    ``outages``: what failures have cost it, nothing where none were to come. ``requests``: times of those that it
    answered, nothing in training.
    """

    metrics: JobMetrics
    decision: Decision
    level: int | None
    loss: Loss | None = None
    alone: AnalyticTimes | None = None
    outcome: JobOutcome | None = None
    stints: tuple[str, ...] = ()
    messages: MessageMetrics | None = None
    packets: Mapping[str, float] = field(default_factory=dict)
    outages: Mapping[str, float] = field(default_factory=dict)
    requests: Mapping[str, object] = field(default_factory=dict)

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
    """A run: what was recorded, its jobs, and GPU time summed over them (s); ``manager``: its manager's metrics.

    ``shared_s``: GPU time of GPUs that several jobs share, beyond the first; ``held_s``: of jobs that waited for more.
    """

    record: RunRecord
    jobs: tuple[MeasuredJob, ...]
    gpu_utilization: float
    allocated_s: float
    idle_s: Mapping[str, float]
    shared_s: float = 0.0
    held_s: float = 0.0
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
    def messages(self) -> MessageMetrics | None:
        """Those of all jobs; None if there are none."""
        by_job = messages_by_job(self.record)
        return message_metrics(by_job, by_job)

    @cached_property
    def loss(self) -> Loss | None:
        """See :func:`testbed.metrics.losses.total_loss`."""
        jobs = [(job.metrics.allocated_s, job.loss) for job in self.jobs]
        return total_loss(jobs, self.gpu_utilization, self.allocated_s, self.shared_s, self.held_s)

    def with_idle_holders(self, held_s: float) -> MeasuredRun:
        """The run with ``held_s`` more GPU-seconds of jobs that hold GPUs but wait for more: those GPUs are idle."""
        busy, allocated = self.gpu_utilization * self.allocated_s, self.allocated_s + held_s
        return replace(
            self,
            gpu_utilization=busy / allocated if allocated > 0 else 0.0,
            allocated_s=allocated,
            held_s=self.held_s + held_s,
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
        shared_s=shared_s,
    )


def packets_of(record: RunRecord, jobs: Sequence[str]) -> Mapping[str, float]:
    """What a simulation at line rate has counted of the packets of ``jobs`` together; nothing in other runs."""
    network = record.environment.get("network")
    by_job = network.get("by_job") if isinstance(network, Mapping) else None
    found = [by_job[job] for job in jobs if job in by_job] if isinstance(by_job, Mapping) else []
    if not found:
        return {}
    packets = sum(each.get("packets", 0.0) for each in found)
    return {
        name: sum(each.get(name, 0.0) * (_weight(each, packets) if unit == _SHARE else 1.0) for each in found)
        for name, unit, _ in PER_FLOW
    }


def _weight(counts: Mapping[str, float], packets: float) -> float:
    return counts.get("packets", 0.0) / packets if packets else 0.0
