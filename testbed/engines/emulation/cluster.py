"""The emulated cluster of a run: network, controller, workers, and the jobs that come and go on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from controller.decider import period_of, wants_profiles
from controller.decision import Decision
from controller.service.messages import DecisionAnswer, VerificationAnswer
from testbed.engines.common.live_jobs import LiveJob, LiveJobs, Spans
from testbed.engines.common.mark_log import MarkLog
from testbed.engines.common.profiling import measure_profile
from testbed.engines.common.step_coordinator import StepCoordinator
from testbed.engines.common.worker_plan import byte_marks_of, hosts_of, tos_of_flows, window_packets
from testbed.engines.emulation.controller_process import ControllerProcess
from testbed.engines.emulation.external.connections import with_connections
from testbed.engines.emulation.external.external_jobs import ExternalJobs
from testbed.engines.emulation.foreign_plugins.stand_ins import managed_jobs_of, scheduler_of
from testbed.engines.emulation.infrastructure import Infrastructure, Tell
from testbed.engines.emulation.jobs.synthetic_jobs import SyntheticJobs
from testbed.engines.emulation.managed_run import StintRunner
from testbed.engines.emulation.network_settings import spread_of
from testbed.engines.emulation.reconfiguration import Reconfiguration, log_times
from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.results.record import DecisionRow
from workloads.iteration.protocol import Closed, Event, HostStep, IterationEnded, Late, Shaped
from workloads.job import Flow, Job

START_DELAY_S: Final = 0.1
FIRST_START_DELAY_S: Final = 0.3
"""Before the first jobs: opening the counters of hundreds of links takes some of it."""

Ask = Callable[[ControllerProcess], Awaitable[DecisionAnswer]]
Prepared = Callable[[], Awaitable[None]]


class Cluster:
    """The jobs of a run on its infrastructure: it lets them come and go, and carries out what is decided.

    ``origin`` is the moment on the monotonic clock at which the first jobs begin. Everything else
    that is public is what the run left: jobs, reports of the workers, decisions, retransmits.
    """

    def __init__(self, experiment: Experiment, infrastructure: Infrastructure, scratch: Path, tell: Tell) -> None:
        self._experiment = experiment
        self._infrastructure = infrastructure
        self._tell = tell
        self.network, self.workers = infrastructure.network, infrastructure.workers
        self._controller = infrastructure.controller
        infrastructure.listener = self._on_event
        self.network.datapath.spread_by(spread_of(experiment))  # the silence of flowlets follows from the scale
        self._scheduler = scheduler_of(experiment)
        self._synthetic = SyntheticJobs(experiment, self.workers)
        self.programs = ExternalJobs(
            experiment, self.network, scratch / "programs", tell, self._on_event, self._reconnect
        )
        self.jobs = LiveJobs(experiment)
        self.switches = infrastructure.switch_check(
            lambda: (flow for job in self.jobs.present_jobs() for flow in job.flows)
        )
        self.decisions: list[DecisionRow] = []
        self._periods = 0
        self.confirmations: list[float] = []
        self.timings = infrastructure.timings
        self.retransmits = 0
        self._enlarged = False
        self.late_workers: list[tuple[str, float, float]] = []
        self.marks = MarkLog()
        self.origin = 0.0
        self._decision = Decision()
        self._changing = asyncio.Lock()
        self._changes = Reconfiguration(experiment, self._controller, self.workers, self.network.datapath.carry_out)
        self.before_opening: Callable[[Job], Awaitable[None]] | None = None
        self.on_departure: Callable[[str], None] = lambda _job: None
        self.managed = managed_jobs_of(experiment)
        self.managed_run = None if self.managed is None else StintRunner(self, self.managed)
        self.steps: StepCoordinator | None = None
        if StepCoordinator.wanted(self._scheduler):
            self.steps = StepCoordinator(experiment, self._scheduler, self.workers.tell, self.marks)

    @property
    def overtaking(self) -> int | None:
        """Packets that a change of level let others of their flow pass; None where they do so all the time."""
        spreads = self._experiment.spreads
        if spreads or self.steps is not None or any(row.decision.byte_levels for row in self.decisions):
            return None
        return self._changes.relevelled * window_packets(self._experiment)

    # The beginning

    async def open_first(self) -> None:
        """Announce the first jobs and connect them; ``RunFailedError`` or ``CommandError`` says what failed."""
        began = time.monotonic() - self.timings["connected"]
        self._tell("set up", note="jobs and rules")
        initial = [job for job in self._experiment.jobs if job.start_s <= 0.0]
        await self._announce(initial, prepare=False)
        self.timings["programmed"] = time.monotonic() - began
        for real in (False, True):  # programs open connections, and then all others have to be there
            await asyncio.gather(*(self._open(job) for job in initial if (job.external is not None) is real))
        await asyncio.gather(*(self.programs.ready(job.name) for job in initial if job.external))
        self.timings["opened"] = time.monotonic() - began
        mismatches = await self._infrastructure.queue_mismatches()
        if mismatches:
            raise RunFailedError(f"the network is not as set: {mismatches[0]}")
        self.timings["set up"] = time.monotonic() - began
        log_times("timings", {**self.network.timings, **self.timings})

    # Jobs come

    def hosts_of(self, job: Job) -> tuple[str, ...]:
        """The hosts of ``job``."""
        return hosts_of(job, self._experiment.fabric)

    def start_first_jobs(self) -> None:
        """Set :attr:`origin` and let the jobs that are there begin."""
        self.origin = time.monotonic() + FIRST_START_DELAY_S
        if self.steps is not None:
            self.steps.origin = self.origin
        for live in self.jobs.values():
            self._start(live.job, self.origin)

    async def arrive_later(self, job: Job) -> None:
        """Wait for the arrival of ``job``, make room for it, and let it begin."""
        await asyncio.sleep(max(0.0, self.seconds_until(job.start_s)))
        if self.before_opening is not None:
            await self.before_opening(job)
        async with self._changing:
            before = self._decision
            (answer,) = await self._announce([job], prepare=True)
            await self._carry_out(before, answer)
            # What is decided next must reach this job too, so it comes up before that.
            await self._open(job)
            if job.external is None:
                self._start(job, time.monotonic() + START_DELAY_S)
        if job.external is not None:
            await self.programs.ready(job.name)
            self._start(job, time.monotonic() + START_DELAY_S)

    def profiles_due(self, disturbed: Callable[[], Spans]) -> list[tuple[LiveJob, int]]:
        """Jobs a profile can be taken of now, where the scheduler asks for one, and from which iteration; each once.

        ``disturbed`` returns when something disturbed the run, on the machine's clock.
        """
        return self.jobs.profiles_due(disturbed) if wants_profiles(self._scheduler) else []

    async def profile(self, live: LiveJob, first: int) -> None:
        """Hand in the profile of a job, measured from its iteration ``first`` on, and carry out what follows."""
        measured = measure_profile(live.job, self.jobs.reports, self._experiment.scale.time, first)
        await self.decide(f"profile of {live.job.name}", lambda there: there.profiled(live.job.name, measured))

    def throughput_due(self) -> bool:
        """Whether the scheduler is to be called again because time has passed; each time once."""
        period_s = period_of(self._scheduler) * self._experiment.scale.time
        if not period_s or time.monotonic() - self.origin < (self._periods + 1) * period_s:
            return False
        self._periods = int((time.monotonic() - self.origin) / period_s)
        return True

    async def measure_throughput(self) -> None:
        """Hand in recent throughput, and carry out what follows."""
        shares = self.jobs.recent_throughput(time.monotonic())
        if shares:
            await self.decide("recent throughput", lambda there: there.throughput_measured(shares))

    async def decide(self, cause: str, ask: Ask, prepared: Prepared | None = None) -> None:
        """Decide again because of ``cause``, and carry that out; ``prepared`` is called when new paths have rules."""
        async with self._changing:
            began, before = time.monotonic(), self._decision
            answer = await ask(self._controller)
            await self.switches.into_force()
            self._note_decision(cause, answer, began)
            if prepared is not None:
                await prepared()
            await self._carry_out(before, answer)

    async def _reconnect(self, job: Job) -> None:
        """The connections of a real program have changed."""

        async def ask(there: ControllerProcess) -> DecisionAnswer:
            answer = await there.reconnected(job)
            self.jobs.reconnected(job)
            return answer

        await self.decide(f"connections of {job.name}", ask)

    async def _tell_throughput(self) -> None:
        """How fast the running jobs were of late beside what they would be alone."""
        shares = self.jobs.recent_throughput(time.monotonic())
        if shares:
            await self._controller.tell_throughput(shares)

    async def _announce(self, jobs: Iterable[Job], *, prepare: bool) -> Sequence[DecisionAnswer]:
        """Notify the controller that ``jobs`` arrive, one by one; the rules of the last decision are in force then."""
        await self._tell_throughput()
        arrived = []
        for job in jobs:
            known = with_connections(job, (), {}, None) if job.external else job
            arrived.append((known, time.monotonic(), await self._controller.arrive(known, prepare=prepare)))
        await self.switches.into_force()
        for job, began, answer in arrived:
            self.jobs.arrive(job)
            self._note_decision(f"arrival of {job.name}", answer, began)
        return [answer for _, _, answer in arrived]

    def _note_decision(self, cause: str, answer: DecisionAnswer, began: float) -> None:
        self._decision = answer.decision
        self._settle_steps()
        self._log_marks()
        confirmed = time.monotonic() - began
        self.confirmations.append(confirmed)
        row, lowest = DecisionRow(self.now(), cause, self._decision, confirmed), self._experiment.levels - 1
        self.decisions.append(row.after(self.decisions, self.jobs.present_jobs(), lowest))

    def _log_marks(self) -> None:
        """The marks that the decision in force allows: those of a flow whose level counts bytes are several."""
        now, decision = time.monotonic(), self._decision
        for flow in (flow for live in self.jobs.values() for flow in live.job.flows):
            counted = byte_marks_of(decision, flow, self._experiment)
            tos = tos_of_flows(decision, (flow,), self._experiment.levels)[flow.id]
            self.marks.set(flow.id, now, counted.marks if counted else [tos])

    @property
    def decision(self) -> Decision:
        """The decision in force."""
        return self._decision

    async def switch_check(self, thorough: bool) -> VerificationAnswer:
        """What on the switches is not as decided, and the packets counted along each flow's path."""
        return await self.switches.check(self._decision, thorough)

    @property
    def steady_since(self) -> int | None:
        """Number of the decision that switches carry out; None while they are being brought to a new one."""
        return None if self._changing.locked() else len(self.decisions)

    def now(self) -> float:
        """Undilated seconds since the first jobs began; 0 before."""
        return max(0.0, time.monotonic() - self.origin) / self._experiment.scale.time if self.origin else 0.0

    def seconds_until(self, then_s: float) -> float:
        """Seconds of the machine's clock until ``then_s`` of the run."""
        return self.origin + then_s * self._experiment.scale.time - time.monotonic()

    async def _open(self, job: Job) -> None:
        """Open the connections of ``job``, or start the program that opens its own."""
        if job.external is not None:
            self.jobs[job.name].opened = True
            await self.programs.open(job)
            return
        await self._synthetic.open(job, self._decision, steps=self.steps is not None)
        self.jobs[job.name].opened = True
        if job.flows:
            self._make_room()
        self._changes.tell_rates(Decision(), self._decision, [job])
        self._changes.tell_pcie_turns(Decision(), self._decision, self.jobs.present_jobs())

    def _make_room(self) -> None:
        """A first packet has gone through: packets of one port may no longer count against all others."""
        if not self._enlarged:
            self.network.datapath.make_room()
            self._enlarged = True

    def _start(self, job: Job, at: float) -> None:
        live = self.jobs.begin(job.name, at)
        if job.external is not None:
            self._make_room()
            self.programs.start(job.name, at)
        else:
            self._keep_time_shift(live)
            self._synthetic.start(job, at)

    # Failures

    async def hold(self, names: Collection[str]) -> None:
        """Let jobs that are about to be cut off send nothing more, and let what they have in flight arrive."""
        await self._changes.cut_off(self._flows_of(names))

    def release(self, names: Collection[str]) -> None:
        """Let jobs that were cut off go on."""
        self._changes.join(self._flows_of(names))

    def _flows_of(self, names: Collection[str]) -> list[Flow]:
        running = [live for live in self.jobs.running() if not live.stopped]
        return [flow for live in running if live.job.name in names for flow in live.job.flows]

    async def stop(self, live: LiveJob) -> None:
        """End the processes of a job, which does not leave."""
        if live.stopped or live.job.external is not None:
            return
        await self.halt(live.job)
        live.stopped = True
        await self._synthetic.close(live.job, reset=True)
        self._settle_steps()

    async def restart(self, live: LiveJob) -> None:
        """Start a stopped job again."""
        self.jobs.restart(live.job.name)
        async with self._changing:
            await self._synthetic.open(live.job, self._decision, steps=self.steps is not None, first=live.first)
            self._changes.tell_rates(Decision(), self._decision, [live.job])
            self._changes.tell_pcie_turns(Decision(), self._decision, self.jobs.present_jobs())
            self._keep_time_shift(live)
            self._synthetic.start(live.job, time.monotonic() + START_DELAY_S)
        self._settle_steps()

    def _settle_steps(self) -> None:
        if self.steps is not None:
            self.steps.set_jobs({live.job.name: live.job for live in self.jobs.present() if not live.stopped})

    # Running jobs change

    async def _carry_out(self, before: Decision, answer: DecisionAnswer) -> None:
        """Bring the jobs that run from the decision ``before`` to the one in force."""
        after = self._decision
        running = self.jobs.running()
        jobs = [live.job for live in running]
        await self._changes.carry_out(before, after, self.jobs.still_there(answer.changes), jobs)
        self.programs.apply(after)
        running = [live for live in running if live.job.external is None]
        jobs = [live.job for live in running]
        self._changes.tell_rates(before, after, jobs)
        self._changes.tell_byte_marks(before, after, jobs)
        self._changes.tell_pcie_turns(before, after, jobs)
        for live in running:
            name = live.job.name
            if (before.shifts.get(name), before.periods.get(name)) != (after.shifts.get(name), after.periods.get(name)):
                self._keep_time_shift(live)

    def _keep_time_shift(self, live: LiveJob) -> None:
        """Shifts with a period count from the beginning of the run, those without from that of the job."""
        job, decision = live.job, self._decision
        if job.name in decision.shifts or job.name in decision.periods:
            live.shifted_at = time.monotonic()
            anchor = self.origin if job.name in decision.periods else live.began
            self._changes.tell_shift(decision, job, self.hosts_of(job), anchor)

    def _on_event(self, host: str, event: Event) -> None:
        match event:
            case IterationEnded():
                self.jobs.iteration_ended(host, event)
                if self.managed_run is not None and self.jobs.finished():
                    self.managed_run.wake()
            case HostStep() if self.steps is not None:
                self.steps.on_step(host, event)
            case Shaped() if self.steps is not None:
                self.steps.on_shaped(event)
            case Late():
                self.late_workers.append((self.workers.name(host), event.start, event.end))
            case Closed():
                self.retransmits += event.retransmits

    # Jobs go

    async def halt(self, job: Job) -> None:
        """Return when no host of ``job`` sends or reports anything more: then its connections can be closed."""
        if not self.jobs[job.name].stopped:
            await (self._synthetic.halt(job) if job.external is None else self.programs.halt(job.name))

    async def depart(self, live: LiveJob) -> None:
        """Close a job's connections and let the controller decide again for those that stay."""
        await self._close(live.job)
        self.on_departure(live.job.name)
        await self.decide(f"departure of {live.job.name}", lambda there: there.depart(live.job.name, prepare=True))

    async def end_all(self) -> None:
        """Stop the jobs that are still there, and put on record what is only known at the end."""
        await self._note_taken_paths()
        left = self.jobs.present_jobs()
        await asyncio.gather(*(self.halt(job) for job in left))
        await asyncio.gather(*(self._close(job) for job in left))

    async def _close(self, job: Job) -> None:
        if self.jobs[job.name].stopped:
            return
        if job.external is None:
            await self._synthetic.close(job)
        else:
            self.retransmits += await self.programs.close(job.name)

    async def _note_taken_paths(self) -> None:
        """Where switches chose paths themselves, put what they chose on record."""
        if not self._decision.hashed:
            return
        taken = {flow: path for flow, path in (await self._controller.observed_paths()).paths.items() if path}
        self._decision = replace(self._decision, paths={**self._decision.paths, **taken}, hashed=())
        self.decisions.append(DecisionRow(self.now(), "paths read back from the switches", self._decision))
