"""Gang scheduling: a job gets all its GPUs at once; also with opportunistic jobs (HiveD)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, QueuedJob


class Gang(Policy):
    """Every job gets the GPUs it asks for, all at once, and keeps them to its end."""

    name: ClassVar[str] = "gang"
    summary: ClassVar[str] = "a job gets what it asks for, all at once, and keeps it to its end"
    needs_remaining: ClassVar[bool] = False

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterable[PlacementRequest]:
        """A request per queued job, except those that cannot fit, block no other and preempt none."""
        free = state.free_gpus  # only falls: no job gives GPUs back
        return (
            PlacementRequest(entry.job, entry.job.gpus, line=entry.line, reason="its turn")
            for entry in queued
            if entry.line is not None or entry.evicts or entry.job.gpus <= free
        )


class Guarantee(Policy):
    """Gangs; opportunistic jobs use idle GPUs, and are preempted for jobs that find no place as good (HiveD).

    A job gets a place as local as if no opportunistic job ran, so that HiveD's guarantee holds beside them; where such
    a place is free, nobody leaves. Preempted opportunistic jobs are placed elsewhere at once where possible.
    """

    name: ClassVar[str] = "guarantee"
    summary: ClassVar[str] = "gangs; opportunistic jobs use what is idle, and leave for the others"
    uses: Mapping[str, str] = {"opportunistic": "their use of idle GPUs"}
    needs_remaining: ClassVar[bool] = False

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PlacementRequest]:
        """Guaranteed jobs first, then opportunistic ones."""
        guests = [running for running in state.running.values() if running.job.opportunistic]
        names = tuple(running.name for running in reversed(guests))  # the last to start leaves first
        for entry in queued:
            if not entry.job.opportunistic:
                yield PlacementRequest(entry.job, entry.job.gpus, line=entry.line, reason="its turn", evicts=names)
        for running in guests:  # a request for one that still runs has no effect
            yield PlacementRequest(running.until(state.time_s), running.job.gpus, reason="had to leave")
        for entry in queued:
            if entry.job.opportunistic:
                yield PlacementRequest(entry.job, entry.job.gpus, reason="finds idle GPUs")
