"""Gandiva's time slicing (Xiao et al., OSDI 2018): more jobs than fit take turns of equal length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import ClassVar

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import number
from workloads.managers.policies.gandiva.suspension import SuspendCosts, change_jobs
from workloads.managers.policies.preemption import Candidate, first_that_fit

SLICE_S = 60.0
SUSPEND_S = 0.1
"""Suspending and resuming at the least memory of a mini-batch (from memory of the paper)."""
MIGRATE_S = 1.5
"""The paper's "a second or two"."""


class TimeSlices(Policy):
    """The job that has run least runs next, for ``slice_s`` seconds.

    Suspending and resuming takes ``suspend_s``, and ``migrate_s`` more where other GPUs are free than those it had.
    """

    name: ClassVar[str] = "time-slices"
    summary: ClassVar[str] = "jobs take turns in time slices, the one that ran least first"
    changes_running: ClassVar[bool] = True
    heeds_evicts: ClassVar[bool] = False
    needs_remaining: ClassVar[bool] = False

    def __init__(self, *, slice_s: float = SLICE_S, suspend_s: float = SUSPEND_S, migrate_s: float = MIGRATE_S) -> None:
        self._slice_s = number(self.name, "slice_s", slice_s, above=0)
        self._costs = SuspendCosts(
            number(self.name, "suspend_s", suspend_s, least=0), number(self.name, "migrate_s", migrate_s, least=0)
        )

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Free GPUs go to waiting jobs; at the end of a slice the jobs that ran least are chosen."""
        running = list(state.running.values())
        waiting: list[Candidate] = [entry.job for entry in queued]
        kept = [each for each in running if not waiting or state.time_s < self._end(each) - 1e-9]
        stays = {each.name for each in kept}
        rotated: list[Candidate] = [each for each in running if each.name not in stays]
        others = sorted([*rotated, *waiting], key=lambda each: self._had(each, state))
        chosen = first_that_fit(others, state.present_gpus - _gpus(kept))
        stays.update(each.name for each in chosen)
        suspended = [each for each in running if each.name not in stays]
        resumed = [each for each in chosen if isinstance(each, Waiting)]
        yield from change_jobs(state, suspended, resumed, "its slice", self._costs)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """The end of the next slice, if a job waits for it."""
        if not waiting:
            return inf
        now_s = state.time_s
        ends = (self._end(each) for each in state.running.values())
        return min((end if end > now_s + 1e-9 else now_s + self._slice_s for end in ends), default=inf)

    def _end(self, running: Running) -> float:
        return running.since_s + self._slice_s

    def _had(self, each: Candidate, state: ClusterState) -> tuple[float, float]:
        """Seconds that the job has run, and its order of submission."""
        if isinstance(each, Running):
            return each.job.ran_s + state.time_s - each.since_s, each.job.number
        return each.ran_s, each.number


def _gpus(running: Sequence[Running]) -> int:
    return sum(len(each.gpus) for each in running)
