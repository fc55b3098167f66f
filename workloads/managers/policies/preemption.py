"""The most important jobs run, the others wait: what preemptive policies have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from workloads.managers.actions import Preempt
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import PlacementRequest, PolicyAction
from workloads.managers.jobs import Running, Waiting

Candidate = Running | Waiting


def asked_by(candidate: Candidate) -> Waiting:
    """What it asks for, or asked for when it started."""
    return candidate.job if isinstance(candidate, Running) else candidate


def gpus_of(candidate: Candidate) -> int:
    """GPUs that it has, or asks for."""
    return len(candidate.gpus) if isinstance(candidate, Running) else candidate.gpus


def first_that_fit(candidates: Sequence[Candidate], gpus: int) -> list[Candidate]:
    """Those of ``candidates``, the most important first, that fit on ``gpus`` GPUs: smaller ones may pass larger."""
    chosen = []
    for candidate in candidates:
        if gpus_of(candidate) <= gpus:
            gpus -= gpus_of(candidate)
            chosen.append(candidate)
    return chosen


def run_these(
    state: ClusterState, chosen: Sequence[Candidate], reason: str, pause_s: float = 0.0
) -> Iterator[PolicyAction]:
    """Let exactly the ``chosen`` jobs run; jobs that cannot be preempted go on as they are.

    ``pause_s``: what a job that ran before needs to go on.
    """
    kept = {candidate.name for candidate in chosen}
    for running in _in_the_way(state.running.values(), kept):
        yield Preempt(running.name, state.time_s, reason)
    for candidate in chosen:
        if isinstance(candidate, Waiting):
            pause = 0.0 if candidate.started_s is None else pause_s
            yield PlacementRequest(candidate, candidate.gpus, reason=reason, pause_s=pause)


def _in_the_way(running: Iterable[Running], kept: set[str]) -> list[Running]:
    return [each for each in running if each.name not in kept and each.job.preemptible]
