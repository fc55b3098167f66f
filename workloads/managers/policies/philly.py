"""Philly (Jeon et al., ATC 2019): gangs that request locality, and less of it the longer they wait.

A job requests the fewest hosts under one ToR. Where there is no such place it backs off and retries; after some tries
it accepts more hosts, then any ToR. With the queue ``fair`` virtual clusters have quotas that are lent while idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from workloads.managers.actions import Requeue
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob
from workloads.managers.options import number

WAIT_S = 150.0
BACK_OFF_S = 120.0
"""Both times are from memory of the paper, which prints neither."""


class Philly(Policy):
    """Waits ``wait_s`` for a place, then backs off for ``back_off_s``; no job is preempted."""

    name: ClassVar[str] = "philly"
    summary: ClassVar[str] = "gangs that back off where there is no local place, and ask again"
    needs_remaining: ClassVar[bool] = False

    def __init__(self, *, wait_s: float = WAIT_S, back_off_s: float = BACK_OFF_S) -> None:
        waits = (("wait_s", wait_s), ("back_off_s", back_off_s))
        self._again_s = sum(number(self.name, option, value, least=0) for option, value in waits)
        if self._again_s <= 0:
            raise ValueError("options 'wait_s' and 'back_off_s' of philly are both 0, expected one above 0")

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """A request for each queued job; one that finds no place retries later."""
        for entry in queued:
            job = entry.job
            later = Requeue(job.name, state.time_s + self._again_s, state.time_s, "no local place")
            yield PlacementRequest(job, job.gpus, line=entry.line, reason="its turn", otherwise=later)
