"""The replay itself: from event to event, jobs arrive, are placed, settle to a rate and end.

Between two events nothing is stepped: the rates that :mod:`testbed.flow.steady` finds for jobs that
share links hold. An event makes anew only what it touches: the decision, if a job that sends came or
went, and the groups of jobs in which somebody's links or level changed. Memory grows with running jobs.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, Protocol

import numpy as np

from controller.decision import (
    STEP_EVENTS,
    ClusterView,
    Decision,
    Event,
    JobArrived,
    JobDeparted,
    Scheduler,
    Step,
    StepEnded,
    StepStarted,
)
from controller.placement_index import FabricIndex
from testbed.errors import RunFailedError
from testbed.flow.maxmin import Floats
from testbed.flow.steady import Fluid, Settled, State, settle
from testbed.replay.groups import groups
from testbed.replay.outcome import JobOutcome, Replayed, Series, Totals
from testbed.replay.traffic import LINK_CLASSES, Traffic, link_classes
from topologies.fabric import Fabric
from workloads.job import Job

COLUMNS: Final = (
    "jobs", "allocated", "busy", "sharing_jobs", "sharing_gpus",
    *(f"load {kind}" for kind in LINK_CLASSES), *(f"intensity {kind}" for kind in LINK_CLASSES),
)  # fmt: skip
"""Of a :class:`Series`: running jobs; GPUs allocated and computing; jobs that share a link with another, and their
GPUs; links in use, added up by class, and the same weighted by the intensity (FLOP/s) of whose bytes they carry."""
BIN_S: Final = 600.0
_ROUNDING: Final = 1e-9
_INSTANT_S: Final = 1e-6
"""A time too short to step through."""


class Placing(Protocol):
    """Who says which waiting jobs start where; keeps account of what is free."""

    def submitted(self, request: Request, now_s: float) -> None:
        """A job has come."""
        ...

    def ended(self, name: str, now_s: float) -> None:
        """A running job has left its GPUs."""
        ...

    def starts(self, now_s: float) -> Sequence[tuple[Request, tuple[str, ...]]]:
        """Jobs that start now, with their GPUs."""
        ...

    @property
    def waiting(self) -> int:
        """Jobs that have come and not started."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """A job of a trace: ``duration_s`` is what it takes alone, ``model`` a name of the catalogue."""

    name: str
    submit_s: float
    duration_s: float
    gpus: int
    model: str
    virtual_cluster: str = ""
    user: str = ""


Builder = Callable[[Request, tuple[str, ...]], Job]
"""Makes the job of a request on its GPUs."""


@dataclass
class _Running:
    request: Request
    traffic: Traffic
    fluid: Fluid
    left: float
    start_s: float
    since_s: float
    rate: float = 0.0
    busy_s: float = 0.0
    version: int = 0
    group: tuple[str, ...] = ()
    state: State | None = None
    step: Step | None = field(default=None, repr=False)

    def share_of_columns(self, rate: float) -> Floats:
        """What the job adds to :data:`COLUMNS` at ``rate`` iterations per second."""
        gpus, traffic = self.fluid.weight, self.traffic
        shares = float(len(self.group) > 1)
        loads = [rate * seconds for seconds in traffic.by_class]
        intensity = traffic.job.flops / self.fluid.communication_s if self.fluid.loads else 0.0
        busy = gpus * rate * traffic.job.compute_s
        return np.array([1.0, gpus, busy, shares, shares * gpus, *loads, *(intensity * load for load in loads)])


class Replay:
    """One scheduler on one fabric over ``requests``, ordered by submission."""

    def __init__(
        self,
        fabric: Fabric,
        scheduler: Scheduler,
        placing: Placing,
        requests: Iterable[Request],
        build: Builder,
        *,
        levels: int = 8,
        seed: int = 1,
        until_s: float = inf,
        jump: bool = True,
    ) -> None:
        """``jump`` False steps through every iteration between two events instead of using long-run rates."""
        self._fabric, self._scheduler, self._placing, self._build = fabric, scheduler, placing, build
        self._requests: Iterator[Request] = iter(requests)
        self._levels, self._seed, self._until_s, self._jump = levels, seed, until_s, jump
        self._index = FabricIndex(fabric)
        self._classes = link_classes(self._index)
        self._by_steps = bool(STEP_EVENTS & frozenset(getattr(scheduler, "events", ())))
        self._running: dict[str, _Running] = {}
        self._ends: list[tuple[float, int, str]] = []
        self._version = 0
        self._next = next(self._requests, None)
        self._decision = Decision()
        self._outcomes: list[JobOutcome] = []
        self._totals = Totals()
        self._series = Series(BIN_S, COLUMNS)
        self.now_s = 0.0

    def run(self, progress: Callable[[float], None] | None = None) -> Replayed:
        """Replay to the end or to ``until_s``; ``progress`` hears the seconds replayed at each event."""
        while (then := self._next_event()) < min(self._until_s, inf):
            self._pass(then)
            gone = self._end_jobs()
            self._submit()
            come = self._start_jobs()
            self._react(come, gone)
            if progress is not None:
                progress(self.now_s)
        if self._until_s < inf:
            self._pass(self._until_s)
        return self._result()

    def _next_event(self) -> float:
        while self._ends and self._stale(self._ends[0]):
            heapq.heappop(self._ends)
        arrival = inf if self._next is None else self._next.submit_s
        return min(arrival, self._ends[0][0] if self._ends else inf)

    def _stale(self, end: tuple[float, int, str]) -> bool:
        running = self._running.get(end[2])
        return running is None or running.version != end[1]

    # Time passes

    def _pass(self, then_s: float) -> None:
        seconds = then_s - self.now_s
        if seconds > 0.0:
            rates = {} if self._jump or seconds < _INSTANT_S else self._exact_rates(seconds)
            values = np.zeros(len(COLUMNS))
            for name, running in self._running.items():
                rate = rates.get(name, running.rate)
                if not self._jump:
                    self._advance(running, then_s, rate)
                values += running.share_of_columns(rate)
            self._totals.allocated += float(values[1]) * seconds
            self._totals.busy += float(values[2]) * seconds
            self._series.add(self.now_s, then_s, values.tolist())
        self.now_s = then_s

    def _exact_rates(self, seconds: float) -> dict[str, float]:
        """Iterations per second over just the ``seconds`` that pass, every iteration stepped through."""
        found: dict[str, float] = {}
        for members in dict.fromkeys(running.group for running in self._running.values()):
            settled = self._settled(members, seconds)
            found.update(zip(members, settled.rates, strict=True))
            for name, state in zip(members, settled.states, strict=True):
                self._running[name].state = state
        return found

    def _settled(self, members: Sequence[str], seconds: float | None = None) -> Settled:
        """What a group does from where its jobs stand: in the long run, or in just ``seconds``."""
        running = [self._running[name] for name in members]
        return settle([each.fluid for each in running], seconds, [each.state for each in running])

    def _advance(self, running: _Running, then_s: float, rate: float) -> None:
        made = rate * (then_s - running.since_s)
        running.left -= made
        running.busy_s += made * running.traffic.job.compute_s
        running.since_s = then_s

    # Jobs go and come

    def _end_jobs(self) -> list[_Running]:
        gone = []
        while self._ends and (self._stale(self._ends[0]) or self._ends[0][0] <= self.now_s):
            end = heapq.heappop(self._ends)
            if self._stale(end):
                continue
            running = self._running[end[2]]
            self._advance(running, self.now_s, running.rate)
            if not self._jump and running.left > _ROUNDING * running.request.duration_s / running.traffic.alone_s:
                self._expect_end(running)  # predicted by the long-run rate, and not there yet
                continue
            gone.append(self._running.pop(end[2]))
            self._placing.ended(end[2], self.now_s)
            self._outcomes.append(self._outcome(gone[-1], self.now_s))
        return gone

    def _submit(self) -> None:
        while self._next is not None and self._next.submit_s <= self.now_s:
            self._placing.submitted(self._next, self.now_s)
            self._next = next(self._requests, None)

    def _start_jobs(self) -> list[_Running]:
        come = []
        for request, gpus in self._placing.starts(self.now_s):
            traffic = Traffic(self._build(request, gpus), self._index, self._classes, self._seed)
            iterations = request.duration_s / traffic.alone_s
            fluid = traffic.fluid(Decision(), self._levels)
            running = _Running(request, traffic, fluid, iterations, self.now_s, self.now_s)
            if self._by_steps and traffic.sends:
                sizes = {flow.id: flow.bytes for flow in traffic.job.flows}
                running.step = Step(request.name, 0, self.now_s, sizes)
            self._running[request.name] = running
            come.append(running)
        return come

    # What follows

    def _react(self, come: Sequence[_Running], gone: Sequence[_Running]) -> None:
        """Decide if somebody who sends came or went; find new rates for those whom that touches."""
        touched = {running.request.name: None for running in come}
        last = [running for running in (*gone, *come) if running.traffic.sends]
        if last:
            self._decide(last[-1], arrived=last[-1] in come)
            for name, running in self._running.items():
                if running.traffic.sends and self._carry_out(running):
                    touched[name] = None
            left = 0
            for running in gone:
                left |= running.traffic.links
            touched.update((n, None) for n, r in self._running.items() if r.traffic.links & left)
            touched.update((n, None) for n in self._old_partners(touched))
        self._settle(touched)

    def _old_partners(self, touched: Mapping[str, None]) -> list[str]:
        """Jobs that were in a group with one of ``touched``."""
        return [name for each in touched for name in self._running[each].group if name in self._running]

    def _decide(self, running: _Running, arrived: bool) -> None:
        began = time.perf_counter()
        jobs = {name: each.traffic.job for name, each in self._running.items() if each.traffic.sends}
        steps = {name: each.step for name, each in self._running.items() if each.step is not None}
        name, event = running.request.name, _event(running.request.name, arrived, self._by_steps)
        view = ClusterView(self._fabric, jobs, self._levels, self._seed, self._decision, steps=steps, time_s=self.now_s)
        self._decision = self._scheduler.decide(view, event)
        if self._decision.rates or self._decision.byte_levels:
            raise RunFailedError(f"{self._scheduler.name} paces or counts bytes (job {name}): a replay has no senders")
        self._totals.decisions += 1
        self._totals.decision_s += time.perf_counter() - began

    def _carry_out(self, running: _Running) -> bool:
        """Bring a job to the decision in force; return whether that changes its links, level or shift."""
        decided = self._decision.paths
        flows = running.traffic.job.flows
        known = decided if flows[0].id in decided else running.traffic.default
        running.traffic.follow(known)
        fluid = running.traffic.fluid(self._decision, self._levels)
        if fluid == running.fluid:
            return False
        running.fluid = fluid
        return True

    def _settle(self, touched: Iterable[str]) -> None:
        links = {name: running.traffic.links for name, running in self._running.items()}
        for members in groups(links, touched):
            self._totals.settled += len(members) > 1
            settled = self._settled(members)
            for name, rate, state in zip(members, settled.rates, settled.states, strict=True):
                running = self._running[name]
                self._advance(running, self.now_s, running.rate)
                running.rate, running.group = rate, members
                if self._jump:
                    running.state = state
                self._expect_end(running)

    def _expect_end(self, running: _Running) -> None:
        self._version += 1
        running.version = self._version
        if running.rate > 0.0:
            end_s = max(self.now_s, self.now_s + running.left / running.rate)
            heapq.heappush(self._ends, (end_s, running.version, running.request.name))

    # The outcome

    def _outcome(self, running: _Running, end_s: float | None) -> JobOutcome:
        request, gpus = running.request, running.fluid.weight
        until_s = self.now_s if end_s is None else end_s
        return JobOutcome(
            request.name, request.gpus, request.submit_s, running.start_s, end_s, request.duration_s,
            gpus * running.busy_s, gpus * (until_s - running.start_s),
        )  # fmt: skip

    def _result(self) -> Replayed:
        for running in self._running.values():
            self._advance(running, self.now_s, running.rate)
        unfinished = [self._outcome(running, None) for running in self._running.values()]
        return Replayed(
            self._scheduler.name, len(self._fabric.gpus), self.now_s, self._totals,
            (*self._outcomes, *unfinished), self._series, self._placing.waiting, len(self._running),
        )  # fmt: skip


def _event(job: str, arrived: bool, by_steps: bool) -> Event:
    """A coflow scheduler orders whole iterations: a job's coming and going are those of its coflow."""
    if by_steps:
        return StepStarted(job, 0) if arrived else StepEnded(job, 0)
    return JobArrived(job) if arrived else JobDeparted(job)
