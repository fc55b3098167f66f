"""Gandiva's suspend and resume (Xiao et al., OSDI 2018): a job resumes where it was suspended, or pays a migration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from workloads.managers.actions import Preempt, Start
from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Ints
from workloads.managers.interfaces import PlacementRequest, PolicyAction
from workloads.managers.jobs import Running, Waiting


@dataclass(frozen=True, slots=True)
class SuspendCosts:
    """Seconds: ``suspend_s`` to suspend and resume in place, ``migrate_s`` more on other GPUs."""

    suspend_s: float
    migrate_s: float


def change_jobs(
    state: ClusterState,
    suspended: Iterable[Running],
    resumed: Sequence[Waiting],
    reason: str,
    costs: SuspendCosts,
    given: Iterable[str] = (),
) -> Iterator[PolicyAction]:
    """Suspend jobs; then resume those whose GPUs are free then, in place; then place the others.

    ``given``: GPUs that other actions before these make free. Jobs that cannot be preempted are not suspended.
    """
    free = state.free.copy()
    free[state.structure.indices(given)] = True
    gone = {each.name for each in suspended if each.job.preemptible}
    for name in [name for name in state.running if name in gone]:
        yield Preempt(name, state.time_s, reason)
        if gone.issuperset(state.running[name].share_gpus_with):
            free[state.held[name]] = True
    elsewhere = []
    for job in resumed:
        home = home_of(state, job)
        if home is None or not free[home].all():
            elsewhere.append(job)
            continue
        free[home] = False
        yield Start(job, job.last_gpus[: job.gpus], state.time_s, reason, pause_s=costs.suspend_s)
    for job in elsewhere:
        pause_s = 0.0 if job.started_s is None else costs.suspend_s + costs.migrate_s
        yield PlacementRequest(job, job.gpus, reason=reason, pause_s=pause_s)


def home_of(state: ClusterState, job: Waiting) -> Ints | None:
    """Indices of the GPUs on which a job was suspended, as many as it asks for; None if it had fewer."""
    return state.structure.indices(job.last_gpus[: job.gpus]) if len(job.last_gpus) >= job.gpus else None
