"""Policies: who gets how many GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, QueuedJob


class Gang(Policy):
    """Every job gets the GPUs it asks for, all at once, and keeps them to its end."""

    name: ClassVar[str] = "gang"
    summary: ClassVar[str] = "a job gets what it asks for, all at once, and keeps it to its end"

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterable[PlacementRequest]:
        """A wish per turn, but for those that have no place and hold up nobody."""
        free = state.free_gpus  # only falls: nobody gives GPUs back
        return (
            PlacementRequest(entry.job, entry.job.gpus, line=entry.line, reason="its turn")
            for entry in queued
            if entry.line is not None or entry.job.gpus <= free
        )


class Guarantee(Policy):
    """Gangs; opportunistic jobs take what is idle, and leave when another one is placed where they are (HiveD).

    Others are placed as if opportunistic jobs were not there, so that what HiveD promises holds beside them. Those
    that had to leave look for another place at once.
    """

    name: ClassVar[str] = "guarantee"
    summary: ClassVar[str] = "gangs; opportunistic jobs use what is idle, and leave for the others"

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PlacementRequest]:
        """First those that have a guarantee, then the others."""
        guests = [running for running in state.running.values() if running.job.opportunistic]
        names = tuple(running.name for running in guests)
        for entry in queued:
            if not entry.job.opportunistic:
                yield PlacementRequest(entry.job, entry.job.gpus, line=entry.line, reason="its turn", evicts=names)
        for running in guests:  # nothing happens to those that still run
            yield PlacementRequest(running.until(state.time_s), running.job.gpus, reason="had to leave")
        for entry in queued:
            if entry.job.opportunistic:
                yield PlacementRequest(entry.job, entry.job.gpus, reason="finds idle GPUs")
