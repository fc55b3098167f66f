"""The replay itself: from event to event, jobs arrive, are placed, settle to a rate and end.

Between two events nothing is stepped: long-run rates hold. An event recomputes only what it affects: the decision, if
a job that sends came or went, and the rates of jobs whose links or level changed and of those that these slow
(:mod:`testbed.engines.replay.rates.long_run_rates`). Memory grows with running jobs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Final

import numpy as np

from controller.decider import Decider, as_decided
from controller.decision import (
    STEP_EVENTS,
    Decision,
    Event,
    JobArrived,
    JobDeparted,
    Scheduler,
    Step,
    StepEnded,
    StepStarted,
)
from controller.schedulers.common.paths_by_job import paths_of
from controller.schedulers.crux.path_index import FabricIndex
from testbed.engines.replay.changed_jobs import ChangedJobs
from testbed.engines.replay.compiled_loops import LOOPS
from testbed.engines.replay.exact_steps import step_exactly
from testbed.engines.replay.gc_tuning import seldom_collected
from testbed.engines.replay.job_totals import HeldGpus, JobTotals
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.outcome import Replayed, Series, Totals
from testbed.engines.replay.rates.link_users import IN_TURNS, LinkUsers
from testbed.engines.replay.rates.long_run_rates import LongRunRates
from testbed.engines.replay.running_job import COLUMNS, Builder, ReplayedJob, ReplayRequest
from testbed.engines.replay.traffic import Traffic, link_classes
from testbed.errors import RunFailedError
from testbed.fluid.maxmin import Floats, Integers
from testbed.fluid.numerical_settings import STANDARD, NumericalSettings
from topologies.fabric import Fabric
from workloads.managers.account import Account, JobOutcome, JobStep, PutOn, ShareGpus, TakeOff, carry_out
from workloads.plugin_errors import PluginError

BIN_S: Final = 600.0
_ALLOCATED: Final = COLUMNS.index("allocated")
_BUSY: Final = COLUMNS.index("busy")
_INSTANT_S: Final = 1e-6
"""A time too short to step through."""


class Replay:
    """One scheduler on one fabric over ``requests``, ordered by submission."""

    def __init__(
        self,
        fabric: Fabric,
        scheduler: Scheduler,
        placing: ManagedPlacing,
        requests: Iterable[ReplayRequest],
        build: Builder,
        *,
        levels: int = 8,
        seed: int = 1,
        until_s: float = inf,
        jump: bool = True,
        numerics: NumericalSettings = STANDARD,
        reference_s: Callable[[ReplayRequest], float] | None = None,
    ) -> None:
        """``jump`` False steps through every iteration between two events instead of using long-run rates.

        ``numerics``: when long-run rates count as stable.
        A job's recorded duration is made of iterations of ``reference_s`` seconds; without it, of iterations as
        long as they are where the job is placed first, alone.
        """
        self._fabric, self._scheduler, self._placing, self._build = fabric, scheduler, placing, build
        self._coming: Iterator[ReplayRequest] = iter(requests)
        self._levels, self._seed, self._until_s, self._jump = levels, seed, until_s, jump
        self._reference_s = reference_s
        self._index = FabricIndex.of(fabric)
        self._index.loops = LOOPS
        self._gpu_number = {gpu: number for number, gpu in enumerate(fabric.gpus)}
        self._packed: list[ReplayedJob] = []
        self._classes = link_classes(self._index)
        self._by_steps = bool(STEP_EVENTS & scheduler.events)
        self._requests: dict[str, ReplayRequest] = {}
        self._accounts: dict[str, Account] = {}
        self._running: dict[str, ReplayedJob] = {}
        self._paused: dict[str, ReplayedJob] = {}
        self._off: dict[str, ReplayedJob] = {}
        self._ends: list[tuple[float, int, str]] = []
        self._version = 0
        self._users = LinkUsers(self._index.absent + len(fabric.gpus))
        self._rates = LongRunRates(self._running, self._users, numerics)
        self._next = next(self._coming, None)
        # as_decided: a job's traffic knows its ECMP paths; filling in those of all jobs takes longer than deciding
        self._decider = Decider(fabric, scheduler, levels, seed, as_decided, keeps_notes=False)
        self._told_anew = ChangedJobs()
        self._outcomes: list[JobOutcome] = []
        self._totals = Totals()
        self._series = Series(BIN_S, COLUMNS)
        self._columns = JobTotals(len(COLUMNS))
        self._held = HeldGpus()
        self.now_s = 0.0

    def run(self, progress: Callable[[float], None] | None = None) -> Replayed:
        """Replay to the end or to ``until_s``; ``progress`` receives the seconds replayed at each event.

        ``RunFailedError``, one line, if a scheduler or a part of the manager from another package fails.
        """
        try:
            with seldom_collected():
                self._go_on(progress)
        except PluginError as error:
            raise RunFailedError(str(error)) from error
        return self._result()

    def _go_on(self, progress: Callable[[float], None] | None) -> None:
        while (then := min(self._next_event(), self._until_s)) < inf:
            self._pass(then)
            if self.now_s >= self._until_s:
                return
            gone = self._end_jobs()
            self._submit()
            come = self._resume_jobs()
            self._manage(come, gone)
            self._react(come, gone)
            if progress is not None:
                progress(self.now_s)

    def _manage(self, come: list[ReplayedJob], gone: list[ReplayedJob]) -> None:
        """Let the manager act, and carry out its actions one by one, since each may depend on those before."""
        with self._totals.work.of("acting"):
            for action in self._placing.actions(self.now_s, self._remaining_s):
                for step in carry_out(action, self._accounts, self.now_s):
                    self._carry_out(step, come, gone)

    def _next_event(self) -> float:
        while self._ends and self._stale(self._ends[0]):
            heapq.heappop(self._ends)
        if not (self._next or self._running or self._paused or self._placing.waiting):
            return inf  # no job is left that a manager's later event could affect
        return min(self._expected_s(), self._ends[0][0] if self._ends else inf)

    def _expected_s(self) -> float:
        """The next event that does not depend on how fast jobs run: a submission, the end of a pause, the manager."""
        arrival = inf if self._next is None else self._next.submit_s
        resumes = min((running.paused_until_s for running in self._paused.values()), default=inf)
        return min(arrival, resumes, self._placing.next_s())

    def _stale(self, end: tuple[float, int, str]) -> bool:
        running = self._running.get(end[2])
        return running is None or running.version != end[1]

    # Time passes

    def _pass(self, then_s: float) -> None:
        """Let time pass until ``then_s``; stepping, until a job has done its work, if that is earlier."""
        if then_s > self.now_s:
            rates: dict[str, float] = {}
            if not self._jump and then_s - self.now_s >= _INSTANT_S:
                rates, seconds = step_exactly(self._running, self._users, then_s - self.now_s)
                then_s = min(then_s, self.now_s + seconds)
            if not self._jump:
                for name, running in self._running.items():
                    rate = rates.get(name, running.rate)
                    running.advance(then_s, rate)
                    self._columns.put(name, running.columns(rate))
            values = self._columns.total()
            values[_ALLOCATED] = len(self._held)
            self._totals.allocated += float(values[_ALLOCATED]) * (then_s - self.now_s)
            self._totals.busy += float(values[_BUSY]) * (then_s - self.now_s)
            self._series.add(self.now_s, then_s, values.tolist())
        self.now_s = then_s
        if not self._jump:
            for running in self._running.values():
                if self._at_its_end(running):
                    self._expect_end(running)

    def _at_its_end(self, running: ReplayedJob) -> bool:
        """Whether nothing is left of a job, or less than a step of the clock, which late in a trace is some 1e-10 s."""
        return running.done or (running.rate > 0.0 and self.now_s + running.left / running.rate <= self.now_s)

    # Jobs go and come

    def _end_jobs(self) -> list[ReplayedJob]:
        gone = []
        while self._ends and (self._stale(self._ends[0]) or self._ends[0][0] <= self.now_s):
            end = heapq.heappop(self._ends)
            if self._stale(end):
                continue
            running = self._running[end[2]]
            running.advance(self.now_s, running.rate)
            if not self._jump and not self._at_its_end(running):
                self._expect_end(running)  # predicted by the long-run rate, and not there yet
                continue
            gone.append(self._running.pop(end[2]))
            self._forget(running)
            if self._placing.ended(running.request, running.account, self.now_s):
                self._outcomes.append(self._outcome(end[2]))
                del self._requests[end[2]], self._accounts[end[2]]
        return gone

    def _forget(self, running: ReplayedJob) -> None:
        """Drop what holds for a job only as long as it runs where it is."""
        self._columns.remove(running.name)
        self._held.give_back(running.traffic.job.gpus)

    def _submit(self) -> None:
        while self._next is not None and self._next.submit_s <= self.now_s:
            request, self._next = self._next, next(self._coming, None)
            if self._placing.submitted(request, self.now_s):
                self._requests[request.name] = request
                self._accounts[request.name] = Account(request.name, request.gpus, request.submit_s)

    def _resume_jobs(self) -> list[ReplayedJob]:
        """Those whose pause after a start or a move is over."""
        come = [running for running in self._paused.values() if running.paused_until_s <= self.now_s]
        for running in come:
            del self._paused[running.name]
            self._set_off(running)
        return come

    def _set_off(self, running: ReplayedJob) -> None:
        running.advance(self.now_s, 0.0)
        if self._by_steps and running.traffic.sends:
            sizes = {flow.id: flow.bytes for flow in running.traffic.job.flows}
            running.step = Step(running.name, 0, self.now_s, sizes)
        self._running[running.name] = running

    def _remaining_s(self, name: str) -> float:
        running = self._running.get(name) or self._paused[name]
        running.advance(self.now_s, running.rate)
        return running.remaining_s

    def _carry_out(self, step: JobStep, come: list[ReplayedJob], gone: list[ReplayedJob]) -> None:
        match step:
            case TakeOff():
                self._take_off(step.job, come, gone)
            case PutOn():
                with self._totals.work.of("placing"):
                    self._put_on(step, come)
            case ShareGpus():  # from now on their GPUs compute for one of them at a time
                for name in step.jobs:
                    packed = self._running.get(name) or self._paused[name]
                    packed.pack = self._gpu_number[step.gpus[0]]
                    self._packed.append(packed)

    def _take_off(self, name: str, come: list[ReplayedJob], gone: list[ReplayedJob]) -> None:
        paused = self._paused.pop(name, None)
        running = paused or self._running.pop(name)
        self._forget(running)
        running.advance(self.now_s, running.rate)
        if paused is None and running in come:
            come.remove(running)
        elif paused is None:
            gone.append(running)
        self._off[name] = running

    def _put_on(self, step: PutOn, come: list[ReplayedJob]) -> None:
        name, request = step.job, self._requests[step.job]
        built = self._build(request, step.gpus)
        placed = self._placing.slowed(built)
        traffic = Traffic(placed, self._index, self._classes, self._seed)
        full_speed_s = traffic.alone_s if placed is built else self._index.job(built).alone.iteration_s
        fluid = traffic.fluid(Decision(), self._levels)
        before, paused_until_s = self._off.pop(name, None), self.now_s + step.pause_s
        account = self._accounts[name]
        if step.pause_s < inf:  # else it holds GPUs and waits for more
            account.begin(self.now_s)
        if before is None:
            iteration_s = full_speed_s if self._reference_s is None else self._reference_s(request)
            left = request.attempt_s / iteration_s * request.gpus / len(step.gpus)
            running = ReplayedJob(request, traffic, fluid, account, left, paused_until_s, full_speed_s=full_speed_s)
        else:
            running = before.moved_to(traffic, fluid, paused_until_s, full_speed_s)
        self._held.take(placed.gpus)
        if step.pause_s > 0.0:
            self._paused[name] = running
            self._columns.put(name, running.columns(0.0))
        else:
            self._set_off(running)
            come.append(running)

    # What follows

    def _react(self, come: Sequence[ReplayedJob], gone: Sequence[ReplayedJob]) -> None:
        """Decide if a job that sends came or went; find new rates for all jobs that this affects."""
        touched = {running.name: None for running in (*come, *self._packed) if running.name in self._running}
        self._packed.clear()
        last = [running for running in (*gone, *come) if running.traffic.sends]
        if last:
            with self._totals.work.of("deciding"):
                self._decide(last[-1], arrived=last[-1] in come)
            told = self._told_anew.by(self._decider.decision, self._running, come)
            touched.update((name, None) for name in told if self._obey(self._running[name]))
        for running in gone:
            self._users.remove(running.name)
        for name in touched:
            self._users.put(name, *self._uses(self._running[name]))
        with self._totals.work.of("settling"):
            self._settle(self._users.affected())

    def _uses(self, running: ReplayedJob) -> tuple[Integers, Floats, int]:
        """What the job may share with others (links and, if it is packed, GPUs); its share of each; its level."""
        links, seconds = running.traffic.arrays
        shares = seconds / (running.fluid.communication_s or 1.0)
        if running.pack >= 0:
            links, shares = np.append(links, self._index.absent + running.pack), np.append(shares, IN_TURNS)
        return links, shares, running.fluid.level

    def _decide(self, running: ReplayedJob, arrived: bool) -> None:
        jobs = {name: each.traffic.job for name, each in self._running.items() if each.traffic.sends}
        steps = {name: each.step for name, each in self._running.items() if each.step} if self._by_steps else {}
        name, event = running.name, _event(running.name, arrived, self._by_steps)
        decision = self._decider.jobs_changed(jobs, event, steps=steps, time_s=self.now_s)
        if decision.rates or decision.byte_levels or decision.weights:
            raise RunFailedError(f"{self._scheduler.name} paces or counts bytes (job {name}): a replay has no senders")

    def _obey(self, running: ReplayedJob) -> bool:
        """Bring a job to the decision in force; return whether that changes its links, level or shift."""
        running.traffic.follow(paths_of(self._decider.decision.paths, running.name))
        fluid = running.traffic.fluid(self._decider.decision, self._levels)
        if fluid is running.fluid or fluid == running.fluid:
            return False
        running.fluid = fluid
        return True

    def _settle(self, touched: Sequence[str]) -> None:
        """Find the rates of ``touched`` and of all whom these may slow."""
        rates = self._rates.after(touched, self.now_s)
        for name, rate in rates.items():
            running = self._running[name]
            running.advance(self.now_s, running.rate)
            running.rate = rate
            self._expect_end(running)
        for name in {**dict.fromkeys(touched), **rates}:
            running = self._running[name]
            self._columns.put(name, running.columns(running.rate))

    def _expect_end(self, running: ReplayedJob) -> None:
        self._version += 1
        running.version = self._version
        if running.rate > 0.0:
            end_s = self.now_s if running.done else self.now_s + running.left / running.rate
            heapq.heappush(self._ends, (end_s, running.version, running.name))

    # The outcome

    def _result(self) -> Replayed:
        on_gpus = [*self._running.values(), *self._paused.values()]
        for running in on_gpus:
            running.advance(self.now_s, running.rate)
        had_gpus = dict.fromkeys(running.name for running in (*on_gpus, *self._off.values()))
        # Those that wait to repeat a failed attempt have had GPUs, too.
        had_gpus |= dict.fromkeys(name for name, account in self._accounts.items() if account.attempts > 1)
        known = (*self._outcomes, *(self._outcome(name) for name in had_gpus))
        outcomes = tuple(replace(each, waits=dict(self._placing.waits(each.name))) for each in known)
        self._totals.settled = self._rates.settled
        return Replayed(
            self._scheduler.name,
            len(self._fabric.gpus),
            self.now_s,
            self._totals,
            outcomes,
            self._series,
            self._placing.waiting,
            len(on_gpus),
            self._placing.notes,
            dict(self._placing.refused),
        )

    def _outcome(self, name: str) -> JobOutcome:
        """The outcome of a job at its end, or at the end of the replay."""
        request = self._requests[name]
        return self._accounts[name].outcome(self.now_s, request.duration_s, status=request.status)


def _event(job: str, arrived: bool, by_steps: bool) -> Event:
    """A coflow scheduler orders whole iterations: a job's coming and going are those of its coflow."""
    if by_steps:
        return StepStarted(job, 0) if arrived else StepEnded(job, 0)
    return JobArrived(job) if arrived else JobDeparted(job)
