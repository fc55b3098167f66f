"""Cluster managers without a network: a job runs as long as its trace records, faster or slower with its GPU count.

This is how papers on cluster managers work their examples. A job needs its duration on the GPUs it asks for; on others
its speed is in proportion (linear scaling, and the speed of the GPU type). Jobs packed on the same GPUs interleave the
resources of their iterations as in Muri (:func:`.interleaving.interleaved_speeds`); if nothing is known of one, they
share the GPUs evenly. A measured speed may take the place of all that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType

from topologies.fabric import Fabric
from workloads.managers.account import Account, JobOutcome, PutOn, carry_out
from workloads.managers.capacities.gpu_types import GpuTypes
from workloads.managers.cluster_state import ClusterState
from workloads.managers.jobs import Running, Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.manager import Manager
from workloads.managers.policies.sharing.resources import shared_speed

Speed = Callable[[Running], float]
"""A job on its GPUs -> its speed there; 1 on the GPUs it asks for, alone."""

Told = Callable[[str, float], float]
"""A job, and the seconds that are left of it -> the seconds that its manager is told."""

Watch = Callable[[float, float, ClusterState], None]

_DONE_S = 1e-9
_MOST_EVENTS = 10_000_000


@dataclass(kw_only=True, eq=False)
class _Progress(Account):
    """A job's account, the job as it was submitted, what is left of its present attempt, and the attempts to come."""

    submitted: Waiting
    alone_s: float
    left_s: float
    paused_until_s: float = 0.0
    then_s: tuple[float, ...] = ()

    @property
    def all_left_s(self) -> float:
        """Seconds that are left of it alone, the attempts to come included."""
        return self.left_s + sum(self.then_s)

    def next_attempt(self, now_s: float) -> None:
        """The attempt under way has failed; the next one begins from the beginning."""
        self.fail(now_s)
        self.left_s, self.then_s = self.then_s[0], self.then_s[1:]


class Play:
    """One manager over some jobs; each needs a ``duration_s``, or ``ValueError``.

    ``speed``: linear scaling by default. ``told``: what managers are told is left of a job, by default the truth.
    ``gpu_types``: a job's duration is that on GPUs of speed 1; None: the types that the manager's capacity knows.
    ``attempts``: job -> seconds of each attempt; all but the last fail, and the job is submitted again as it was, with
    what is left. Their sum takes the place of its duration, also in what managers are told.
    """

    def __init__(
        self,
        manager: Manager,
        fabric: Fabric,
        jobs: Iterable[Waiting],
        speed: Speed | None = None,
        told: Told | None = None,
        gpu_types: GpuTypes | None = None,
        attempts: Mapping[str, tuple[float, ...]] = MappingProxyType({}),
    ) -> None:
        self._ledger, self._told = Ledger(manager, fabric, gpu_types), told
        self._types, self._host_of = self._ledger.state.structure.gpu_types, fabric.host_of_gpu
        self._speed = self._scaled_speed if speed is None else speed
        self._known: dict[str, _Progress] = {}
        for job in sorted(jobs, key=lambda job: job.submit_s):
            if job.name in self._known:
                raise ValueError(f"job '{job.name}' is listed twice, expected a name for each")
            self._known[job.name] = _progress(job, attempts.get(job.name, ()))
        self._coming = [self._first_of(each, job in attempts) for job, each in self._known.items()]
        self._kept_speed: dict[str, tuple[tuple[str, ...], float]] = {}
        self._now_s = 0.0

    def run(self, watch: Watch | None = None) -> tuple[JobOutcome, ...]:
        """Play until nothing more happens; return the outcomes of the jobs, in order of submission.

        ``watch`` is told of every stretch between two events: from when, to when, and the cluster's state.
        """
        for _ in range(_MOST_EVENTS):
            then_s = self._next_s()
            if then_s == inf or self._idle():
                return tuple(each.outcome(self._now_s, each.alone_s) for each in self._known.values())
            if watch is not None:
                watch(self._now_s, then_s, self._ledger.state)
            self._pass(then_s)
            self._end_jobs()
            while self._coming and self._coming[0].submit_s <= self._now_s:
                job = self._coming.pop(0)
                self._ledger.submit(job)
            for action in self._ledger.decide(self._now_s, self._left):
                for step in carry_out(action, self._known, self._now_s):
                    if isinstance(step, PutOn):
                        self._put_on(step)
        raise ValueError(f"nothing ends after {_MOST_EVENTS} events")

    @property
    def refused(self) -> Mapping[str, str]:
        """Jobs that could never start, each with the reason."""
        return self._ledger.refused

    def _idle(self) -> bool:
        return not self._coming and not self._ledger.waiting and not self._ledger.state.running

    def _left(self, name: str) -> float:
        left_s = self._known[name].all_left_s
        return left_s if self._told is None else self._told(name, left_s)

    def _next_s(self) -> float:
        arrival = self._coming[0].submit_s if self._coming else inf
        ends = (self._end_of(running) for running in self._ledger.state.running.values())
        return max(self._now_s, min(arrival, self._ledger.next_s(), min(ends, default=inf)))

    def _end_of(self, running: Running) -> float:
        each = self._known[running.name]
        return max(self._now_s, each.paused_until_s) + each.left_s / self._speed(running)

    def _pass(self, then_s: float) -> None:
        for running in self._ledger.state.running.values():
            each = self._known[running.name]
            begin_s = max(self._now_s, each.paused_until_s)
            each.advance(then_s)
            each.left_s -= max(0.0, then_s - begin_s) * self._speed(running)
        self._now_s = then_s

    def _end_jobs(self) -> None:
        done = [name for name in self._ledger.state.running if self._known[name].left_s <= _DONE_S]
        for name in done:
            each, now_s = self._known[name], self._now_s
            self._ledger.end(name, now_s)
            if not each.then_s:
                each.end(now_s)
                continue
            each.next_attempt(now_s)
            left_s, failed = self._left(name), each.attempts - 1
            self._ledger.submit(replace(each.submitted, remaining_s=left_s, waiting_since_s=now_s, attempts=failed))

    def _first_of(self, each: _Progress, fails: bool) -> Waiting:
        """A job that fails is known as it is when it is submitted again: by what is left of all its attempts."""
        return replace(each.submitted, remaining_s=self._left(each.name)) if fails else each.submitted

    def _put_on(self, step: PutOn) -> None:
        each = self._known[step.job]
        if step.pause_s < inf:
            each.begin(self._now_s)
        each.paused_until_s = self._now_s + step.pause_s

    def _scaled_speed(self, running: Running) -> float:
        """Seconds of its duration per second."""
        if not self._types.speed_of_host:
            gpus = float(len(running.gpus))
        else:
            kept = self._kept_speed.get(running.name)
            if kept is None or kept[0] is not running.gpus:
                kept = running.gpus, self._types.speed(self._host_of[gpu] for gpu in running.gpus)
                self._kept_speed[running.name] = kept
            gpus = kept[1]
        return gpus / running.job.gpus * shared_speed(running, self._ledger.state)


def _progress(job: Waiting, attempts: tuple[float, ...]) -> _Progress:
    if job.duration_s is None or job.duration_s < 0:
        raise ValueError(f"job '{job.name}' has no duration, expected seconds of at least 0")
    seconds = attempts or (job.duration_s,)
    whole_s = sum(seconds)
    known = replace(job, duration_s=whole_s, remaining_s=whole_s) if attempts else job
    return _Progress(
        job.name, job.gpus, job.submit_s, submitted=known, alone_s=whole_s, left_s=seconds[0], then_s=seconds[1:]
    )
