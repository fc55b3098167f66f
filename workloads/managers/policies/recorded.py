"""Recorded starts: every job starts when, and on the GPUs, that a schedule recorded elsewhere says.

With the placement fixed, two replays differ only by the rates that they compute, and not by which GPUs a job gets
because another ended a moment earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from workloads.managers.actions import Start
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, Policy, QueuedJob
from workloads.managers.jobs import Waiting


@dataclass(frozen=True, slots=True)
class RecordedStart:
    """The job ``job`` started at ``time_s`` on ``gpus``, after a pause of ``pause_s``."""

    job: str
    """Its name."""
    time_s: float
    """When, in seconds."""
    gpus: tuple[str, ...]
    """Names of its GPUs, in ring order."""
    pause_s: float = 0.0
    """Seconds until it computed."""


class Recorded(Policy):
    """Starts each job at its recorded time on its recorded GPUs, or as soon after that as those are free.

    GPUs go from job to job in the recorded order, however long each takes. Jobs without a recorded start wait for ever.
    Raises ``ValueError`` if a job has several starts: it was preempted, and a schedule of starts cannot say that.
    """

    name: ClassVar[str] = "recorded"
    summary: ClassVar[str] = "each job starts when and where a recorded schedule says"
    needs_remaining: ClassVar[bool] = False
    heeds_evicts: ClassVar[bool] = False

    def __init__(self, starts: Sequence[RecordedStart]) -> None:
        """``starts`` in the order in which they happened."""
        self._starts = {start.job: start for start in starts}
        if len(self._starts) < len(starts):
            twice = next(start.job for place, start in enumerate(starts) if start is not self._starts[start.job])
            raise ValueError(f"job '{twice}' has several recorded starts, expected one: jobs that are never preempted")
        self._order = {start.job: place for place, start in enumerate(starts)}

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[Start]:
        """Start the jobs that are due, in the recorded order; one that waits for GPUs keeps them from later ones."""
        due = [entry.job for entry in queued if self._time_s(entry.job) <= state.time_s]
        kept: set[str] = set()
        for job in sorted(due, key=lambda each: self._order[each.name]):
            start = self._starts[job.name]
            if kept.isdisjoint(start.gpus) and state.free[state.structure.indices(start.gpus)].all():
                yield Start(job, start.gpus, state.time_s, "as recorded", pause_s=start.pause_s)
            kept.update(start.gpus)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """The next recorded start of a waiting job."""
        times = map(self._time_s, waiting)
        return min((time_s for time_s in times if time_s > state.time_s), default=inf)

    def _time_s(self, job: Waiting) -> float:
        start = self._starts.get(job.name)
        return inf if start is None else start.time_s
