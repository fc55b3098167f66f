"""What preemptive policies share: the most important jobs run, the others wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from workloads.managers.actions import Preempt
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import PlacementRequest, PolicyAction
from workloads.managers.jobs import Running, Waiting

Candidate = Running | Waiting


def asked_by(candidate: Candidate) -> Waiting:
    """Its request, or the one it started with."""
    return candidate.job if isinstance(candidate, Running) else candidate


def gpus_of(candidate: Candidate) -> int:
    """GPUs that it has, or asks for."""
    return len(candidate.gpus) if isinstance(candidate, Running) else candidate.gpus


def first_that_fit(candidates: Sequence[Candidate], gpus: int) -> list[Candidate]:
    """The ``candidates``, most important first, that fit on ``gpus`` GPUs: smaller ones may pass larger ones."""
    chosen = []
    for candidate in candidates:
        if gpus_of(candidate) <= gpus:
            gpus -= gpus_of(candidate)
            chosen.append(candidate)
    return chosen


def run_these(
    state: ClusterState, chosen: Sequence[Candidate], reason: str, pause_s: float = 0.0
) -> Iterator[PolicyAction]:
    """Run exactly the ``chosen`` jobs, and those that cannot be preempted.

    ``pause_s``: what resuming costs a job that ran before.
    """
    kept = {candidate.name for candidate in chosen}
    for running in _preempted(state.running.values(), kept):
        yield Preempt(running.name, state.time_s, reason)
    for candidate in chosen:
        if isinstance(candidate, Waiting):
            pause = 0.0 if candidate.started_s is None else pause_s
            yield PlacementRequest(candidate, candidate.gpus, reason=reason, pause_s=pause)


def _preempted(running: Iterable[Running], kept: set[str]) -> list[Running]:
    return [each for each in running if each.name not in kept and each.job.preemptible]
