"""Recorded starts: every job starts when, and on the GPUs, that a schedule recorded elsewhere says.

With the placement fixed, two replays differ only by the rates that they compute, and not by which GPUs a job gets
because another ended a moment earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
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
    attempts: int = 0
    """How many of its attempts had failed before."""


class Recorded(Policy):
    """Starts each job at its recorded time on its recorded GPUs, or as soon after that as those are free.

    GPUs go from job to job in the recorded order, however long each takes. Jobs without a recorded start wait for ever.
    A job that fails has a start for each attempt. Raises ``ValueError`` if an attempt has several: it was preempted,
    and a schedule of starts cannot say that.
    """

    name: ClassVar[str] = "recorded"
    summary: ClassVar[str] = "each job starts when and where a recorded schedule says"
    needs_remaining: ClassVar[bool] = False
    heeds_evicts: ClassVar[bool] = False

    def __init__(self, starts: Sequence[RecordedStart]) -> None:
        """``starts`` in the order in which they happened."""
        self._starts: dict[tuple[str, int], RecordedStart] = {}
        for start in starts:
            if self._starts.setdefault((start.job, start.attempts), start) is not start:
                raise ValueError(
                    f"job '{start.job}' has several recorded starts, expected one: jobs that are never preempted"
                )
        self._order = {key: place for place, key in enumerate(self._starts)}

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[Start]:
        """Start the jobs that are due, in the recorded order; one that waits for GPUs keeps them from later ones.

        So does one whose earlier attempt still runs, though it had failed by now in the record.
        """
        waiting = {_key(entry.job): entry.job for entry in queued}
        there = (*waiting.values(), *(running.job for running in state.running.values()))
        due = {key for job in there for key in self._due(job, state.time_s) if key in waiting or key != _key(job)}
        kept: set[str] = set()
        for key in sorted(due, key=self._order.__getitem__):
            start = self._starts[key]
            free = kept.isdisjoint(start.gpus) and state.free[state.structure.indices(start.gpus)].all()
            if free and key in waiting:
                yield Start(waiting[key], start.gpus, state.time_s, "as recorded", pause_s=start.pause_s)
            kept.update(start.gpus)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """The next recorded start of a waiting job."""
        times = map(self._time_s, waiting)
        return min((time_s for time_s in times if time_s > state.time_s), default=inf)

    def _time_s(self, job: Waiting) -> float:
        start = self._starts.get(_key(job))
        return inf if start is None else start.time_s

    def _due(self, job: Waiting, now_s: float) -> Iterator[tuple[str, int]]:
        """The recorded starts of a job until now, from its present attempt on."""
        for attempts in count(job.attempts):
            start = self._starts.get((job.name, attempts))
            if start is None or start.time_s > now_s:
                return
            yield job.name, attempts


def _key(job: Waiting) -> tuple[str, int]:
    return job.name, job.attempts
