"""Optimus (Peng et al., EuroSys 2018) in its allreduce form: GPUs go where they shorten a job most.

Each round every job gets one GPU, in order of submission; then one more GPU at a time goes to the job whose remaining
time it shortens most, while it shortens any. A step of a job computes a fixed batch, divided over its GPUs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from math import inf
from typing import ClassVar

from workloads.managers.actions import Preempt
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob, Tick
from workloads.managers.jobs import Waiting
from workloads.managers.options import next_round, number
from workloads.managers.policies.preemption import Candidate, asked_by
from workloads.managers.policies.srtf import remaining_s

ROUND_S = 600.0
RESTART_S = 30.0


def step_s(job: Waiting, gpus: int) -> float:
    """Seconds of a step on ``gpus`` GPUs: compute divided over them, a ring that sends 2 (n - 1) / n of the model."""
    ring, own = 2 * (gpus - 1) / gpus, 2 * (job.gpus - 1) / job.gpus
    communication_s = job.communication_s * ring / own if own else 0.0
    return job.compute_s * job.gpus / gpus + communication_s


class Optimus(Policy):
    """Allocates in rounds of ``round_s`` seconds; a resize costs the job ``restart_s``. It may grow to ``most`` times
    the GPUs it asked for."""

    name: ClassVar[str] = "optimus"
    summary: ClassVar[str] = "one GPU more at a time to the job that gains most, in rounds; durations are known"
    changes_running: ClassVar[bool] = True

    def __init__(self, *, round_s: float = ROUND_S, restart_s: float = RESTART_S, most: float = 1.0) -> None:
        self._round_s = number(self.name, "round_s", round_s, above=0)
        self._restart_s = number(self.name, "restart_s", restart_s, least=0)
        self._most = number(self.name, "most", most, above=0)

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Allocate all GPUs each round, and whenever the cluster was empty."""
        if not isinstance(event, Tick) and state.running:
            return
        running = list(state.running.values())
        everybody: list[Candidate] = [*running, *(entry.job for entry in queued)]
        everybody.sort(key=lambda each: asked_by(each).number)
        counts = self.allocate(everybody, state.present_gpus, state.time_s)
        for each in running:
            if not counts[each.name]:
                yield Preempt(each.name, state.time_s, "no GPU left in this round")
        for each in sorted(running, key=lambda each: counts[each.name] - len(each.gpus)):
            if counts[each.name] and counts[each.name] != len(each.gpus):
                yield PlacementRequest(
                    each.job, counts[each.name], "resize", reason="its share of the round", pause_s=self._restart_s
                )
        for entry in queued:
            if counts[entry.job.name]:
                pause_s = 0.0 if entry.job.started_s is None else self._restart_s
                yield PlacementRequest(
                    entry.job, counts[entry.job.name], reason="its share of the round", pause_s=pause_s
                )

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """The next round."""
        if not state.running and not waiting:
            return inf
        return next_round(state.time_s, self._round_s)

    def allocate(self, jobs: Sequence[Candidate], gpus: int, now_s: float) -> dict[str, int]:
        """Return job -> GPUs: one each in order, then one at a time by gain."""
        counts = {each.name: int(number < gpus) for number, each in enumerate(jobs)}
        left = gpus - sum(counts.values())
        known = {each.name: each for each in jobs if counts[each.name]}
        heap = [(-self._gain(each, 1, now_s), place, each.name) for place, each in enumerate(known.values())]
        heapq.heapify(heap)
        while left and heap and heap[0][0] < 0.0:
            _, place, name = heapq.heappop(heap)
            counts[name] += 1
            left -= 1
            heapq.heappush(heap, (-self._gain(known[name], counts[name], now_s), place, name))
        return counts

    def _gain(self, each: Candidate, gpus: int, now_s: float) -> float:
        """Seconds by which one GPU more than ``gpus`` shortens what is left of the job."""
        job = asked_by(each)
        if gpus >= self._most * job.gpus or step_s(job, job.gpus) <= 0.0:
            return 0.0
        steps = remaining_s(each, now_s) / step_s(job, job.gpus)
        return (step_s(job, gpus) - step_s(job, gpus + 1)) * steps
