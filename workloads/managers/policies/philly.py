"""Philly (Jeon et al., ATC 2019): gangs that request locality, and less of it the longer they wait.

A job requests the fewest hosts under one ToR. Where such a place is not free it holds what there is of one, and asks
again whenever GPUs free up; after a while it gives back what it holds and backs off: it asks for nothing, whatever
frees up, until it retries. After some tries it accepts more hosts, then any ToR; a job whose attempt failed begins with
none. With the queue ``fair`` virtual clusters have quotas that are lent while idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import ClassVar

from workloads.managers.actions import Ask, Requeue
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import number

WAIT_S = 150.0
BACK_OFF_S = 120.0
"""Both times are from memory of the paper, which prints neither."""


class Philly(Policy):
    """Waits ``wait_s`` for a place and holds what there is of it, then backs off for ``back_off_s``.

    What a job holds is what its placer offers of a place (``Placer.part``; the placer ``locality`` does). It gets other
    GPUs if a whole place is free elsewhere.
    """

    name: ClassVar[str] = "philly"
    summary: ClassVar[str] = "gangs that hold what there is of a local place while they wait, back off, and ask again"
    changes_running: ClassVar[bool] = True
    needs_remaining: ClassVar[bool] = False

    def __init__(self, *, wait_s: float = WAIT_S, back_off_s: float = BACK_OFF_S) -> None:
        self._wait_s = number(self.name, "wait_s", wait_s, least=0)
        self._back_off_s = number(self.name, "back_off_s", back_off_s, least=0)
        if self._wait_s + self._back_off_s <= 0:
            raise ValueError("options 'wait_s' and 'back_off_s' of philly are both 0, expected one above 0")

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """A request for each job that holds a part of a place, then for each queued job."""
        for each in sorted(_holding(state), key=lambda held: (held.job.asking_since_s or 0.0, held.job.number)):
            over = self._over_at(each.job, state.time_s) <= state.time_s
            yield PlacementRequest(
                each.job,
                each.job.gpus,
                "resize",
                reason="has the rest",
                otherwise=self._back_off(each.job, state.time_s) if over else None,
                holds=not over,
            )
        for entry in queued:
            yield self._request(entry, state.time_s)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """Return when the next attempt is over."""
        asking = [job for job in waiting if job.asking_since_s is not None]
        asking += [each.job for each in _holding(state)]
        return min((self._over_at(job, state.time_s) for job in asking), default=inf)

    def _request(self, entry: QueuedJob, now_s: float) -> PlacementRequest:
        job = entry.job if entry.job.asking_since_s is not None else replace(entry.job, asking_since_s=now_s)
        over = self._over_at(job, now_s) <= now_s
        begins = Ask(job.name, now_s, "no local place yet") if entry.job.asking_since_s is None else None
        otherwise = self._back_off(job, now_s) if over else begins
        return PlacementRequest(job, job.gpus, line=entry.line, reason="its turn", otherwise=otherwise, holds=not over)

    def _over_at(self, job: Waiting, now_s: float) -> float:
        """When the attempt under way is over."""
        return (now_s if job.asking_since_s is None else job.asking_since_s) + self._wait_s

    def _back_off(self, job: Waiting, now_s: float) -> Requeue:
        return Requeue(job.name, now_s + self._back_off_s, now_s, "no local place")


def _holding(state: ClusterState) -> list[Running]:
    return [each for each in state.running.values() if each.holding]
