"""Tiresias (Gu et al., NSDI 2019): least attained service in two dimensions, without knowing durations.

Priority queues by attained service, GPUs times time; strict between queues. Inside one, 2D-LAS serves jobs as the
authors' simulators do: running jobs before waiting ones, so that none is preempted needlessly, and a job that comes
from a higher queue last. With the order ``first-start`` it serves them in the order of their first start, which is
how the paper reads; with ``entry`` as the Tiresias in Pollux's simulator does: in the order in which they were
submitted, or entered a lower queue. 2D-Gittins serves them by the Gittins index.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import ceil, inf
from typing import ClassVar

from workloads.managers.actions import Demote, Promote
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import at_round, flag, listed, next_round, number, one_of, shown
from workloads.managers.policies.preemption import Candidate, asked_by, gpus_of, run_first

DEFAULT_LIMITS = (3600.0,)
DEFAULT_KNOB = 8.0
ORDERS = ("running", "first-start", "entry")
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

    ``limits``: upper bounds of all queues but the last, GPU-seconds. ``promote``: a job below the first queue that has
    waited, in all, so many times as long as it ran is promoted to the first; 0 for never. ``services``: the known
    distribution of total service, which makes it 2D-Gittins. ``slice_s``: the continuous form: jobs of a queue are
    ordered by attained service after each slice. ``restart_s``: what resuming costs a preempted job. ``order``:
    that of the jobs of a queue, one of :data:`ORDERS`. ``whole_seconds``: a job moves to the next queue at a whole
    second of its running time, as in the authors' simulator. ``round_s``: decide in rounds of so many seconds only,
    as Pollux's simulator does; 0: whenever something happens.
    """

    name: ClassVar[str] = "tiresias"
    summary: ClassVar[str] = "least attained GPU-time first in priority queues, preemptive; durations are not known"
    changes_running: ClassVar[bool] = True
    heeds_evicts: ClassVar[bool] = False
    needs_remaining: ClassVar[bool] = False

    def __init__(
        self,
        *,
        limits: Sequence[float] = DEFAULT_LIMITS,
        promote: float = DEFAULT_KNOB,
        services: Sequence[float] = (),
        slice_s: float = 0.0,
        restart_s: float = 0.0,
        order: str = "running",
        whole_seconds: bool = False,
        round_s: float = 0.0,
    ) -> None:
        self._limits = _gpu_seconds("limits", limits)
        if any(lower >= upper for lower, upper in pairwise(self._limits)):
            raise ValueError(f"option 'limits' of tiresias must be rising numbers of GPU-seconds, not {shown(limits)}")
        known = _gpu_seconds("services", services)
        self._gittins = Gittins(known) if known else None
        self._knob = number(self.name, "promote", promote, least=0)
        self._slice_s = number(self.name, "slice_s", slice_s, least=0)
        self._restart_s = number(self.name, "restart_s", restart_s, least=0)
        self._round_s = number(self.name, "round_s", round_s, least=0)
        self._inside = one_of(self.name, "order", order, ORDERS)
        self._whole_seconds = flag(self.name, "whole_seconds", whole_seconds)

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Promote starving jobs; run the first that fit."""
        if self._round_s and not at_round(state.time_s, self._round_s):
            return
        waiting = [entry.job for entry in queued]
        for place, job in enumerate(waiting):
            if self._starves(job, state.time_s):
                yield Promote(job.name, state.time_s, f"has waited {self._knob:g} times as long as it ran")
                waiting[place] = job.promoted(state.time_s)  # it may start at once, and then begins anew there, too
        if self._inside == "entry":
            yield from self._demotions(state)
        everybody: list[Candidate] = [*state.running.values(), *waiting]
        ordered = sorted(everybody, key=lambda each: self._order(each, state))
        yield from run_first(state, ordered, "its turn", self._restart_s)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """When the next running job enters another queue, a waiting one begins to starve, or the slice ends."""
        now_s = state.time_s
        if self._round_s:
            return next_round(now_s, self._round_s) if state.running or waiting else inf
        crossings = (self._crossing(running, now_s) for running in state.running.values())
        starvings = (self._starves_at(job) for job in waiting)
        slices = now_s + self._slice_s if self._slice_s and waiting and state.running else inf
        return min(min(crossings, default=inf), min(starvings, default=inf), slices)

    def _demotions(self, state: ClusterState) -> Iterator[Demote]:
        """Note when running jobs enter a lower queue."""
        for running in state.running.values():
            queue = self._queue_of(running.attained_service_s(state.time_s))
            for lower in range(len(running.job.demoted_s), queue):
                yield Demote(running.name, state.time_s, f"has had {self._limits[lower]:g} GPU-seconds")

    def _order(self, each: Candidate, state: ClusterState) -> tuple[float, ...]:
        job = asked_by(each)
        attained = _attained(each, state.time_s)
        queue = self._queue_of(attained)
        begun = inf if job.started_s is None else job.started_s
        if self._gittins is not None:
            until = self._limits[queue] if queue < len(self._limits) else inf
            return (queue, -self._gittins.index(attained, until), begun, job.number)
        if self._slice_s:
            return (queue, attained, job.number)
        if self._inside == "first-start":
            return (queue, begun, job.number)
        if self._inside == "entry":
            entered_s = (0.0, *job.demoted_s, state.time_s)[min(queue, len(job.demoted_s) + 1)]
            return (queue, entered_s, job.number)
        return (queue, *self._place_in_queue(each, queue, state))

    def _place_in_queue(self, each: Candidate, queue: int, state: ClusterState) -> tuple[float, ...]:
        """Running jobs in the order in which they began to run in this queue, of one moment those that started before
        those that came from a higher queue, in order of submission; then those preempted in it, the last one first,
        those of one moment in the order in which they ran; then those that entered it and have not run there, in the
        order in which they did, new jobs before those promoted at that moment."""
        now_s, decided_s = state.time_s, state.decided_s
        gpus, lower = gpus_of(each), self._limits[queue - 1] if queue else 0.0
        noticed = ceil(lower / gpus) * gpus if self._whole_seconds else lower
        if isinstance(each, Running):
            beyond_s = (each.attained_service_s(now_s) - noticed) / gpus
            entered_s = now_s - beyond_s
            ran_above = queue > 0 and each.since_s < entered_s - _ROUNDING * (1 + now_s)
            if ran_above and decided_s < entered_s - _ROUNDING * (1 + now_s):
                return (3, each.job.number)
            return (0, max(each.since_s, entered_s), each.job.number if ran_above else -1)
        since_s = each.submit_s if each.waiting_since_s is None else each.waiting_since_s
        ran_here = each.attained_service_s > noticed * (1 + _ROUNDING) + _ROUNDING
        return (1, -since_s, each.preemption) if ran_here else (2, since_s, each.started_s is not None)

    def _queue_of(self, attained: float) -> int:
        return bisect_right(self._limits, attained * (1 + _ROUNDING) + _ROUNDING)

    def _crossing(self, running: Running, now_s: float) -> float:
        attained = running.attained_service_s(now_s)
        place = self._queue_of(attained)
        if place == len(self._limits):
            return inf
        left_s = (self._limits[place] - attained) / len(running.gpus)
        if self._whole_seconds:
            ran_s = running.job.ran_s + now_s - running.since_s
            left_s = ceil((ran_s + left_s) * (1 - _ROUNDING)) - ran_s
        return now_s + left_s

    def _starves(self, job: Waiting, now_s: float) -> bool:
        return now_s >= self._starves_at(job) * (1 - _ROUNDING)

    def _starves_at(self, job: Waiting) -> float:
        if not self._knob or not self._queue_of(job.attained_service_s) or job.waiting_since_s is None:
            return inf
        return job.waiting_since_s + self._knob * job.ran_s - job.waited_s


def _attained(each: Candidate, now_s: float) -> float:
    return each.attained_service_s(now_s) if isinstance(each, Running) else each.attained_service_s


def _gpu_seconds(option: str, given: object) -> tuple[float, ...]:
    """An option that is a list of GPU-seconds; ``ValueError``, one line, for anything else."""
    values = listed(Tiresias.name, option, given, "GPU-seconds such as [3600, 7200]")
    return tuple(number(Tiresias.name, option, value, above=0) for value in values)
