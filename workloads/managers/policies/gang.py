"""Policies: who gets how many GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, Turn, Want


class Gang:
    """Every job gets the GPUs it asks for, all at once, and keeps them to its end."""

    name: ClassVar[str] = "gang"
    summary: ClassVar[str] = "a job gets what it asks for, all at once, and keeps it to its end"

    def decide(self, state: ClusterState, turns: Sequence[Turn], event: Event) -> Iterable[Want]:
        """A wish per turn, but for those that have no place and hold up nobody."""
        free = state.free_gpus  # only falls: nobody gives GPUs back
        return (
            Want(turn.job, turn.job.gpus, line=turn.line, reason="its turn")
            for turn in turns
            if turn.line is not None or turn.job.gpus <= free
        )


class Guarantee:
    """Gangs; opportunistic jobs take what is idle, and leave when another one is placed where they are (HiveD).

    Others are placed as if opportunistic jobs were not there, so that what HiveD promises holds beside them. Those
    that had to leave look for another place at once.
    """

    name: ClassVar[str] = "guarantee"
    summary: ClassVar[str] = "gangs; opportunistic jobs use what is idle, and leave for the others"

    def decide(self, state: ClusterState, turns: Sequence[Turn], event: Event) -> Iterator[Want]:
        """First those that have a guarantee, then the others."""
        guests = [running for running in state.running.values() if running.job.opportunistic]
        names = tuple(running.name for running in guests)
        for turn in turns:
            if not turn.job.opportunistic:
                yield Want(turn.job, turn.job.gpus, line=turn.line, reason="its turn", evicts=names)
        for running in guests:  # nothing happens to those that still run
            yield Want(running.until(state.time_s), running.job.gpus, reason="had to leave")
        for turn in turns:
            if turn.job.opportunistic:
                yield Want(turn.job, turn.job.gpus, reason="finds idle GPUs")
