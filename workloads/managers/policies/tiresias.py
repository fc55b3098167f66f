"""Tiresias (Gu et al., NSDI 2019): least attained service in two dimensions, without knowing durations.

Priority queues by attained service, GPUs times time; strict between queues. Inside one, 2D-LAS serves jobs in the
order of their first start, so that no running job is preempted needlessly; 2D-Gittins by the Gittins index.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf
from typing import ClassVar

from workloads.managers.actions import Promote
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import number
from workloads.managers.policies.preemption import Candidate, asked_by, first_that_fit, run_these

DEFAULT_LIMITS = (3600.0,)
DEFAULT_KNOB = 8.0
_ROUNDING = 1e-9


class Gittins:
    """The Gittins index of a job whose total service is one of ``services`` (GPU-seconds, equally likely)."""

    def __init__(self, services: Sequence[float]) -> None:
        """``ValueError`` for no services, or one that is not positive."""
        if not services or min(services) <= 0:
            raise ValueError("a distribution of service needs at least one value, each more than 0 GPU-seconds")
        self._sorted = sorted(float(service) for service in services)
        self._sums = [0.0, *accumulate(self._sorted)]

    def index(self, attained: float, until: float = inf) -> float:
        """Return P(S <= until | S > attained) / E[min(S, until) - attained | S > attained].

        That is the chance to end per GPU-second if the job is served until it has ended or has had ``until``; 0 for a
        job that has had more than any known one.
        """
        first, last = bisect_right(self._sorted, attained), bisect_right(self._sorted, until)
        longer = len(self._sorted) - first
        if longer == 0 or until <= attained:
            return 0.0
        ending = max(0, last - first)
        beyond = (longer - ending) * until if longer > ending else 0.0
        expected = (self._sums[max(first, last)] - self._sums[first] + beyond) / longer - attained
        return ending / longer / expected if expected > 0 else inf


class Tiresias(Policy):
    """The discretised scheduler.

    ``limits``: upper bounds of all queues but the last, GPU-seconds. ``promote``: a job that has waited so many times
    as long as it ran is promoted; 0 for never. ``services``: the known distribution of total service, which makes it
    2D-Gittins. ``slice_s``: the continuous form: jobs of a queue are ordered by attained service after each slice.
    ``restart_s``: what resuming costs a preempted job.
    """

    name: ClassVar[str] = "tiresias"
    summary: ClassVar[str] = "least attained GPU-time first in priority queues, preemptive; durations are not known"
    changes_running: ClassVar[bool] = True

    def __init__(
        self,
        *,
        limits: Sequence[float] = DEFAULT_LIMITS,
        promote: float = DEFAULT_KNOB,
        services: Sequence[float] = (),
        slice_s: float = 0.0,
        restart_s: float = 0.0,
    ) -> None:
        if list(limits) != sorted(set(limits)) or any(limit <= 0 for limit in limits):
            raise ValueError(f"option 'limits' of tiresias must be rising numbers of GPU-seconds, not {list(limits)}")
        self._limits = tuple(map(float, limits))
        self._gittins = Gittins(services) if services else None
        self._knob = number(self.name, "promote", promote, least=0)
        self._slice_s = number(self.name, "slice_s", slice_s, least=0)
        self._restart_s = number(self.name, "restart_s", restart_s, least=0)

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Promote starving jobs; run the first that fit."""
        starving = [entry.job for entry in queued if self._starves(entry.job, state.time_s)]
        for job in starving:
            yield Promote(job.name, state.time_s, f"has waited {self._knob:g} times as long as it ran")
        promoted = {job.name for job in starving}
        everybody: list[Candidate] = [*state.running.values(), *(entry.job for entry in queued)]
        ordered = sorted(everybody, key=lambda each: self._order(each, each.name in promoted, state.time_s))
        yield from run_these(state, first_that_fit(ordered, state.present_gpus), "its turn", self._restart_s)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """When the next running job enters another queue, a waiting one begins to starve, or the slice ends."""
        now_s = state.time_s
        crossings = (self._crossing(running, now_s) for running in state.running.values())
        starvings = (self._starves_at(job) for job in waiting)
        slices = now_s + self._slice_s if self._slice_s and waiting and state.running else inf
        return min(min(crossings, default=inf), min(starvings, default=inf), slices)

    def _order(self, each: Candidate, promoted: bool, now_s: float) -> tuple[float, ...]:
        job = asked_by(each)
        attained = 0.0 if promoted else _attained(each, now_s)
        queue = bisect_right(self._limits, attained * (1 + _ROUNDING) + _ROUNDING)
        begun = inf if job.started_s is None else job.started_s
        if self._gittins is not None:
            until = self._limits[queue] if queue < len(self._limits) else inf
            return (queue, -self._gittins.index(attained, until), begun, job.number)
        if self._slice_s:
            return (queue, attained, job.number)
        return (queue, begun, job.number)

    def _crossing(self, running: Running, now_s: float) -> float:
        attained = running.attained_service_s(now_s)
        place = bisect_right(self._limits, attained * (1 + _ROUNDING) + _ROUNDING)
        if place == len(self._limits):
            return inf
        return now_s + (self._limits[place] - attained) / len(running.gpus)

    def _starves(self, job: Waiting, now_s: float) -> bool:
        return now_s >= self._starves_at(job) * (1 - _ROUNDING)

    def _starves_at(self, job: Waiting) -> float:
        if not self._knob or job.ran_s <= 0.0 or job.waiting_since_s is None:
            return inf
        return job.waiting_since_s + self._knob * job.ran_s


def _attained(each: Candidate, now_s: float) -> float:
    return each.attained_service_s(now_s) if isinstance(each, Running) else each.attained_service_s
