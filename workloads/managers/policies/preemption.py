"""What preemptive policies share: the most important jobs run, the others wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


def run_first(
    state: ClusterState, ordered: Sequence[Candidate], reason: str, pause_s: float = 0.0
) -> Iterator[PolicyAction]:
    """Run the first of ``ordered``, most important first, that fit, and those that cannot be preempted.

    Jobs are preempted in the same order. ``pause_s``: what resuming costs a job that ran before.
    """
    chosen = first_that_fit(ordered, state.present_gpus)
    kept = {candidate.name for candidate in chosen}
    for candidate in ordered:
        if isinstance(candidate, Running) and candidate.name not in kept and candidate.job.preemptible:
            yield Preempt(candidate.name, state.time_s, reason)
    for candidate in chosen:
        if isinstance(candidate, Waiting):
            pause = 0.0 if candidate.started_s is None else pause_s
            yield PlacementRequest(candidate, candidate.gpus, reason=reason, pause_s=pause)
