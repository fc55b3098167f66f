"""Shortest remaining time or service first: oracles that know all durations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import ClassVar

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running
from workloads.managers.options import number
from workloads.managers.policies.preemption import Candidate, asked_by, gpus_of, run_first


class Srtf(Policy):
    """Shortest remaining time first, preemptive. Jobs without an estimate come last."""

    name: ClassVar[str] = "srtf"
    summary: ClassVar[str] = "shortest remaining time first, preemptive; durations are known"
    changes_running: ClassVar[bool] = True
    heeds_evicts: ClassVar[bool] = False
    by_service: ClassVar[bool] = False

    def __init__(self, *, restart_s: float = 0.0) -> None:
        self._restart_s = number(self.name, "restart_s", restart_s, least=0)

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterable[PolicyAction]:
        """Run the shortest that fit."""
        everybody: list[Candidate] = [*state.running.values(), *(entry.job for entry in queued)]
        ordered = sorted(everybody, key=lambda candidate: self._left(candidate, state.time_s))
        return run_first(state, ordered, "shortest first", self._restart_s)

    def _left(self, candidate: Candidate, now_s: float) -> tuple[float, float]:
        """Seconds, or GPU-seconds, left; the first submitted wins a tie."""
        left_s = remaining_s(candidate, now_s)
        return (left_s * gpus_of(candidate) if self.by_service else left_s), asked_by(candidate).number


class Srsf(Srtf):
    """Shortest remaining service first: GPUs times time (the oracle that Tiresias is compared with)."""

    name: ClassVar[str] = "srsf"
    summary: ClassVar[str] = "least remaining GPU-time first, preemptive; durations are known"
    by_service: ClassVar[bool] = True


def remaining_s(candidate: Candidate, now_s: float) -> float:
    """Seconds left on the GPUs asked for, had the job run undisturbed; infinite if unknown."""
    left_s = candidate.left_s(now_s) if isinstance(candidate, Running) else candidate.left_s
    return inf if left_s is None else left_s
