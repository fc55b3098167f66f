"""Gandiva's grow and shrink (Xiao et al., OSDI 2018): jobs use idle GPUs of their hosts until others need them.

Jobs take part by their ``max_gpus``. The paper does not say which job shrinks first: here the last that grew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import ClassVar, Final

from workloads.managers.actions import Resize
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import next_round, number

LOOK_S: Final = 60.0
"""As long as a time slice."""
RESTART_S: Final = 0.1
"""Suspending and resuming at the least memory of a mini-batch (from memory of the paper)."""


class GrowShrink(Policy):
    """Gangs; every ``look_s`` seconds, while no job waits, elastic jobs grow onto idle GPUs of their hosts.

    A resize costs ``restart_s``.
    """

    name: ClassVar[str] = "grow-shrink"
    summary: ClassVar[str] = "gangs; idle GPUs of a host go to elastic jobs there, and come back when others wait"
    uses: Mapping[str, str] = {"elastic": "growing"}
    changes_running: ClassVar[bool] = True
    needs_remaining: ClassVar[bool] = False

    def __init__(self, *, look_s: float = LOOK_S, restart_s: float = RESTART_S) -> None:
        self._look_s = number(self.name, "look_s", look_s, above=0)
        self._restart_s = number(self.name, "restart_s", restart_s, least=0)

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Shrink jobs as far as waiting jobs need, and start those; while none waits, let jobs grow."""
        if not queued:
            yield from self.growing(state)
            return
        free, grown = state.free_gpus, grown_jobs(state)
        for entry in queued:
            lent = sum(extra_gpus(each) for each in grown)
            while free < entry.job.gpus <= free + lent:
                each = grown.pop()
                lent, free = lent - extra_gpus(each), free + extra_gpus(each)
                yield self.shrinking(state, each, f"{entry.job.name} waits")
            if entry.job.gpus <= free:
                free -= entry.job.gpus
            yield PlacementRequest(entry.job, entry.job.gpus, line=entry.line, reason="its turn")

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """The next round, if a job could grow."""
        if waiting or not any(_room(state, each) for each in state.running.values()):
            return inf
        return next_round(state.time_s, self._look_s)

    def growing(self, state: ClusterState) -> Iterator[Resize]:
        """Idle GPUs go to elastic jobs on their hosts."""
        given: set[str] = set()
        for each in state.running.values():
            more = tuple(gpu for gpu in _room(state, each) if gpu not in given)
            if more:
                given.update(more)
                yield self._resize(state, each, (*each.gpus, *more), "GPUs of its host are idle")

    def shrinking(self, state: ClusterState, each: Running, reason: str) -> Resize:
        """A job gives back what it has grown by."""
        return self._resize(state, each, each.gpus[: each.job.gpus], reason)

    def _resize(self, state: ClusterState, each: Running, gpus: tuple[str, ...], reason: str) -> Resize:
        return Resize(each.name, gpus, state.time_s, reason, each.bound, self._restart_s)


def extra_gpus(each: Running) -> int:
    """GPUs beyond those it asked for."""
    return len(each.gpus) - each.job.gpus


def grown_jobs(state: ClusterState) -> list[Running]:
    """Jobs that have grown, the last to change at the end."""
    return sorted((each for each in state.running.values() if extra_gpus(each) > 0), key=lambda each: each.since_s)


def _room(state: ClusterState, each: Running) -> tuple[str, ...]:
    """Idle GPUs on the job's hosts that it may have."""
    most = int(min(each.job.max_gpus or each.job.gpus, state.most_gpus(each.name))) - len(each.gpus)
    if most <= 0 or each.share_gpus_with:
        return ()
    hosts = dict.fromkeys(state.fabric.host_of_gpu[gpu] for gpu in each.gpus)
    return tuple(gpu for host in hosts for gpu in state.free_on(host))[:most]
