"""What a job loses to contention, taken apart by analysis: to its own flows, and to other jobs. Pure.

With the paths decided for it but nothing else on the fabric the job would iterate in ``isolated(paths)``; without any
of its own flows on one link, in ``isolated()``. The difference is what its *own* flows cost each other; what the
measured mean takes beyond ``isolated(paths)`` is due to the *other* jobs (jitter, stragglers and the emulation's own
error included).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.experiment.experiment import Experiment
from testbed.metrics.job_metrics import JobMetrics, decision_for
from testbed.results.record import RunRecord
from workloads.job import Job


@dataclass(frozen=True, slots=True)
class Alone:
    """Analytic iteration time (s) and utilisation of a job alone: on no shared link, and on its decided paths."""

    ideal_s: float
    ideal_utilization: float
    decided_s: float
    decided_utilization: float


@dataclass(frozen=True, slots=True)
class Loss:
    """What a job loses per iteration (s) and in points of its GPU utilisation to its own flows and to other jobs."""

    own_s: float
    others_s: float
    own_points: float
    others_points: float


def alone_of(job: Job, record: RunRecord, experiment: Experiment) -> Alone | None:
    """The job's analytic times under the decision in force; None if the switches chose its paths, or for a program."""
    from workloads.analysis import isolated

    if job.external is not None:
        return None
    decision = decision_for(record, job)
    paths = decision.paths
    if any(flow.id not in paths or flow.id in decision.hashed for flow in job.flows):
        return None
    ideal = isolated(job, experiment.fabric)
    decided = isolated(job, experiment.fabric, {flow.id: paths[flow.id] for flow in job.flows})
    return Alone(ideal.iteration_s, ideal.utilization, decided.iteration_s, decided.utilization)


def loss_of(mean_s: float | None, utilization: float, alone: Alone) -> Loss | None:
    """The loss of a job with this iteration time and utilisation; None if it has no measured iteration."""
    if mean_s is None:
        return None
    return Loss(
        own_s=alone.decided_s - alone.ideal_s,
        others_s=mean_s - alone.decided_s,
        own_points=100 * (alone.ideal_utilization - alone.decided_utilization),
        others_points=100 * (alone.decided_utilization - utilization),
    )


def total_loss(jobs: Sequence[tuple[JobMetrics, Loss | None]]) -> dict[str, float] | None:
    """Points over all GPUs: the jobs' weighted by the GPU time they were allocated; None if one is unknown."""
    losses = [(metrics.allocated_s, loss) for metrics, loss in jobs if loss is not None]
    allocated = sum(metrics.allocated_s for metrics, _ in jobs)
    if allocated <= 0 or len(losses) < len(jobs):
        return None
    return {
        "own_points": sum(loss.own_points * weight for weight, loss in losses) / allocated,
        "others_points": sum(loss.others_points * weight for weight, loss in losses) / allocated,
    }
