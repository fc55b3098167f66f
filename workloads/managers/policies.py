"""Policies: who gets how many GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from workloads.managers.cluster import ClusterState
from workloads.managers.points import Event, Turn, Want


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
