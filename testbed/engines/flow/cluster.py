"""A cluster whose packets are fluids or simulated: the jobs' own programs on a clock that jumps from event to event.

Hosts run the same state machines as the workers of an emulation (:class:`JobProgram`), steps and
shifts follow the same rules, and decisions come from the same schedulers; only the links are
computed. Times are seconds of the scenario, sizes bytes.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from controller.decider import Decider, with_hashed_paths
from controller.decision import Decision, LinkDown, LinkUp, Scheduler
from controller.schedulers.registry import create
from testbed.engines.common.live_jobs import LiveJob, LiveJobs
from testbed.engines.common.managed_jobs import ManagedJobs
from testbed.engines.common.mark_log import MarkLog
from testbed.engines.common.profiling import measure_profile
from testbed.engines.common.step_coordinator import StepCoordinator
from testbed.engines.common.worker_plan import job_plans, pcie_turns_of, slice_size, time_shift_of
from testbed.engines.flow.link_rows import link_rows
from testbed.engines.flow.networks.create import LATENCY_S, create_network
from testbed.engines.flow.networks.network import PacketCounts
from testbed.engines.flow.streams import FlowReceiver, FlowSender
from testbed.experiment.experiment import UNSCALED, Experiment, LinkFailure
from testbed.results.record import DecisionRow, LinkRow
from topologies.shaping import tos_of_level
from workloads.iteration.from_plan import program_of
from workloads.iteration.hold import Hold
from workloads.iteration.pcie_semaphore import PcieSemaphore
from workloads.iteration.program import JobProgram
from workloads.iteration.protocol import Event, HostStep, IterationEnded, ShapeFlows, Tell
from workloads.iteration.shared_gpus import SharedGpus
from workloads.iteration.time_shift import PhaseKeeper
from workloads.job import Flow, Job

SAMPLE_S: Final = 1.0

Program = JobProgram[FlowSender, FlowReceiver]


@dataclass
class FlowJob:
    """What carries a job out: a program for each of its hosts, and both ends of its flows."""

    live: LiveJob
    programs: dict[str, Program] = field(default_factory=dict)
    out: dict[str, FlowSender] = field(default_factory=dict)
    into: dict[str, FlowReceiver] = field(default_factory=dict)

    @property
    def job(self) -> Job:
        """The job."""
        return self.live.job


class FlowCluster:
    """Runs jobs; what is public besides is what the run left behind."""

    def __init__(self, experiment: Experiment, scheduler: Scheduler | None = None) -> None:
        """Jobs run unscaled; the scale of ``experiment`` is that of its packets, if they are simulated.

        ``scheduler`` decides in place of the experiment's, if given.
        """
        self._scaled = experiment
        experiment = self._experiment = replace(experiment, scale=UNSCALED)
        fabric = experiment.fabric
        self._network = create_network(self._scaled)
        if scheduler is None:
            scheduler = create(experiment.scheduler.name, experiment.scheduler.options, experiment.seed)
        self._decider = Decider(fabric, scheduler, experiment.levels, experiment.seed, with_hashed_paths)
        self._steps: StepCoordinator | None = None
        if StepCoordinator.wanted(scheduler):
            own = create(experiment.scheduler.name, experiment.scheduler.options, experiment.seed)
            self._steps = StepCoordinator(experiment, own, self._tell_worker, MarkLog())
        self._levels = {tos_of_level(level, experiment.levels): level for level in range(experiment.levels)}
        self._timers: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()
        self._pcie: dict[str, PcieSemaphore[FlowSender]] = {}
        self._gpus: dict[str, SharedGpus] = {}
        self._at_place: dict[int, tuple[FlowJob, Flow]] = {}
        self.now = 0.0
        self.events = 0
        self._down: list[str] = []
        self._cancelled: set[str] = set()
        self._wakes_s = inf
        self.jobs = LiveJobs(experiment)
        self._carried: dict[str, FlowJob] = {}
        self.decisions: list[DecisionRow] = []
        self.links: list[LinkRow] = []
        self._packets: dict[str, PacketCounts] = {}
        self.managed: ManagedJobs | None = None
        if experiment.managed is not None:
            self.managed = ManagedJobs(experiment.managed, fabric, experiment.seed)
            self._wake_at(self.managed.next_s())
        for job in experiment.jobs:
            self._expect(job)
        for failure in experiment.link_failures:
            self._expect_failure(failure)
        self.at(SAMPLE_S, self._sample)
        if self._decider.period_s:
            self.at(self._decider.period_s, self._measure_throughput)

    # Time

    def clock(self) -> float:
        """Seconds of the run."""
        return self.now

    def at(self, when: float, handler: Callable[[float], None]) -> None:
        """Call ``handler(0)`` at ``when``, or now if that is past."""
        heapq.heappush(self._timers, (when, next(self._order), handler))

    def step(self) -> None:
        """Go to the next event and let everything happen that happens then."""
        self.events += 1
        timer = max(self.now, self._timers[0][0]) if self._timers else inf
        self.now, reached = self._network.run(self.now, timer)
        for place in reached:
            self._reached(place)
        while self._timers and self._timers[0][0] <= self.now:
            _, _, handler = heapq.heappop(self._timers)
            handler(0.0)

    def _reached(self, place: int) -> None:
        """A message has been sent whole, or has reached a count of bytes."""
        running, flow = self._at_place[place]
        sender, receiver = running.out[flow.id], running.into[flow.id]
        if not self._network.ended(place):
            sender.settle_level()
            return
        total, program = self._network.total(place), running.programs[self._host(flow.target)]

        def arrive(_late: float) -> None:
            receiver.arrive(total)
            sender.arrive()
            program.arrived(receiver)
            running.programs[self._host(flow.source)].writable(sender)

        self.at(self.now + LATENCY_S * self._network.hops(place), arrive)

    def _sample(self, _late: float) -> None:
        """A row for each link and level that sent something."""
        self.flush_links()
        self.at(self.now + SAMPLE_S, self._sample)

    def flush_links(self) -> None:
        """Put on record what links have sent since the last time."""
        self.links += link_rows(self.now, self._network)

    def counted(self) -> dict[str, object]:
        """What is counted of packets, in all and by job; nothing where there are none at line rate."""
        found = self._network.counted()
        for running in self._present() if found else ():
            self._count(running)
        by_job = {job: counts.values() for job, counts in self._packets.items()}
        return {**found, "by_job": by_job} if found else {}

    def _count(self, running: FlowJob) -> None:
        counts = sum((self._network.counts_of(each.place) for each in running.out.values()), PacketCounts())
        self._packets[running.job.name] = counts

    # Jobs

    def _expect(self, job: Job) -> None:
        self.at(job.start_s, lambda _late: self._arrive(job))

    def _manage(self) -> None:
        """Ask the cluster manager, and do what it says."""
        if self.managed is None:
            return
        changes = self.managed.decide(self.now, self.jobs.completed)
        for name in changes.stopped:
            self._cancelled.add(name)
            if name in self.jobs:
                self._depart(self._carried[name])
        for job in changes.started:
            self._expect(job)
        self._wake_at(self.managed.next_s())

    def _wake_at(self, then_s: float) -> None:
        """Ask the manager again at ``then_s``, unless that is to happen sooner anyway."""
        if then_s < self._wakes_s:
            self._wakes_s = then_s
            self.at(then_s, lambda _late: self._wake(then_s))

    def _wake(self, then_s: float) -> None:
        if then_s == self._wakes_s:
            self._wakes_s = inf
            self._manage()

    def _end(self, running: FlowJob) -> None:
        """All iterations are made."""
        if running.live.ended:
            return
        self._depart(running)
        if self.managed is not None:
            self.managed.ended(running.job.name, self.now)
            self._manage()

    def _arrive(self, job: Job) -> None:
        if job.name in self._cancelled:
            return
        self._decider.take_throughput(self.jobs.recent_throughput(self.now))
        decision = self._decider.arrive(job)
        self.jobs.arrive(job)
        running = self._carried[job.name] = FlowJob(self.jobs.begin(job.name, self.now))
        self._note(f"arrival of {job.name}", decision)
        self._open(running, decision)
        self.carry_out(decision)
        for program in running.programs.values():
            program.start(self.now)

    # Links fail and come back

    def _expect_failure(self, failure: LinkFailure) -> None:
        self.at(failure.at_s, lambda _late: self._change_links(LinkDown(failure.link)))
        if failure.until_s is not None:
            self.at(failure.until_s, lambda _late: self._change_links(LinkUp(failure.link)))

    def _change_links(self, event: LinkDown | LinkUp) -> None:
        """Paths are decided again at once: what detection and the controller take is not modelled."""
        if isinstance(event, LinkDown):
            self._down.append(event.link)
        else:
            self._down.remove(event.link)
        left = self._experiment.fabric.without(self._down)
        self._network.links_changed(left)
        decision = self._decider.links_changed(left, event)
        self._note(f"{event.link} {'failed' if isinstance(event, LinkDown) else 'carries again'}", decision)
        self.carry_out(decision)

    def _open(self, running: FlowJob, decision: Decision) -> None:
        job, departure_s = running.job, self._network.departure_s(running.job)
        slice_bytes = self._scaled.scale.unscale_size(slice_size(job, self._scaled))
        for host, plan in job_plans(job, self._experiment, decision, steps=self._steps is not None).items():
            program: Program = program_of(
                replace(plan, departure=departure_s), self, self._hear(host), lambda _stream: None
            )
            program.link_is_busy = lambda flow: self._network.link_is_busy(running.out[flow].place)
            program.pcie = self._pcie.setdefault(host, PcieSemaphore(self._resume))
            program.gpus = self._gpus.setdefault(host, SharedGpus()).share_of(job.name, plan.gpus)
            running.programs[host] = program
        for flow in job.flows:
            level = decision.level_of(flow, self._experiment.levels - 1)
            place = self._network.add(self._way(flow, decision), level, slice_bytes)
            self._at_place[place] = (running, flow)
            running.out[flow.id] = FlowSender(flow.id, self._network, place, level)
            if (weights := decision.weights_of(flow)) is not None and flow.bytes > 0:
                self._network.weigh(place, weights.parts, flow.bytes)
            running.into[flow.id] = FlowReceiver(flow.id, self._network, place)
            running.programs[self._host(flow.source)].out[flow.id] = running.out[flow.id]
            running.programs[self._host(flow.target)].into[flow.id] = running.into[flow.id]

    def _depart(self, running: FlowJob) -> None:
        running.live.ended = True
        self._close(running)
        decision = self._decider.depart(running.job.name)
        self._note(f"departure of {running.job.name}", decision)
        self.carry_out(decision)

    def _close(self, running: FlowJob) -> None:
        self._count(running)
        for program in running.programs.values():
            program.halt()
        for sender in running.out.values():
            self._network.remove(sender.place)
            del self._at_place[sender.place]

    def _profile(self, running: FlowJob, first: int) -> None:
        measured = measure_profile(running.job, self.jobs.reports, 1.0, first)
        decision = self._decider.profiled(running.job.name, measured)
        self._note(f"profile of {running.job.name}", decision)
        self.carry_out(decision)

    def _measure_throughput(self, _late: float) -> None:
        """Time has passed: let the scheduler decide by how fast jobs were of late."""
        shares = self.jobs.recent_throughput(self.now)
        if shares:
            self._note("recent throughput", decision := self._decider.throughput_measured(shares))
            self.carry_out(decision)
        self.at(self.now + self._decider.period_s, self._measure_throughput)

    def _hear(self, host: str) -> Tell:
        """What the programs of ``host`` tell goes here."""

        def tell(event: Event) -> None:
            if isinstance(event, IterationEnded):
                self._iteration_ended(host, event)
            elif isinstance(event, HostStep) and self._steps is not None:
                self._steps.on_step(host, event)

        return tell

    def _iteration_ended(self, host: str, event: IterationEnded) -> None:
        live, running = self.jobs.iteration_ended(host, event), self._carried[event.job]
        if live.finished:
            self.at(self.now, lambda _late: self._end(running))
        elif self._decider.wants_profiles and (first := self.jobs.profile_due(live)) is not None:
            self._profile(running, first)

    # Decisions

    def _note(self, cause: str, decision: Decision) -> None:
        row, lowest = DecisionRow(self.now, cause, decision), self._experiment.levels - 1
        self.decisions.append(row.after(self.decisions, self.jobs.present_jobs(), lowest))
        if self._steps is not None:
            self._steps.set_jobs({job.name: job for job in self.jobs.present_jobs()})

    def carry_out(self, decision: Decision) -> None:
        """Put ``decision`` in force for the jobs that run."""
        for running in self._present():
            for flow in running.job.flows:
                self._apply(running, flow, decision)
            self._keep_time_shift(running, decision)
        turns = pcie_turns_of(decision, self.jobs.present_jobs(), self._experiment.fabric, self._experiment.levels)
        for host, table in self._pcie.items():
            table.assign(turns.get(host, {}))

    def _apply(self, running: FlowJob, flow: Flow, decision: Decision) -> None:
        sender = running.out[flow.id]
        self._network.lead_over(sender.place, self._way(flow, decision))
        sender.byte_levels = decision.byte_levels_of(flow)
        self._set_level(sender, decision.level_of(flow, self._experiment.levels - 1))
        self._set_rate(running, sender, decision.rates.get(flow.id, inf) / 8)

    def _set_level(self, sender: FlowSender, level: int) -> None:
        sender.level = level
        sender.settle_level()

    def _set_rate(self, running: FlowJob, sender: FlowSender, bytes_per_s: float) -> None:
        """A rate of 0 holds the flow, and frees PCIe for those that wait for their turn."""
        flow = running.job.flow_by_id[sender.flow]
        held = sender.held & Hold.ZERO_RATE
        if bytes_per_s == 0.0:
            sender.held |= Hold.ZERO_RATE
        else:
            sender.held &= ~Hold.ZERO_RATE
            self._network.set_limit(sender.place, bytes_per_s)
        if held != sender.held & Hold.ZERO_RATE:
            self._pcie[self._host(flow.source)].changed(flow.id)
            if sender.started:
                sender.send(1)

    def _keep_time_shift(self, running: FlowJob, decision: Decision) -> None:
        """Shifts with a period count from the beginning of the run, those without from that of the job."""
        name = running.job.name
        anchor = 0.0 if name in decision.periods else running.live.began
        time_shift = time_shift_of(decision, name, UNSCALED, anchor)
        for program in running.programs.values():
            kept = None if program.phase_keeper is None else program.phase_keeper.time_shift
            if kept is None or time_shift is None or (kept.shift, kept.period) != (time_shift.shift, time_shift.period):
                program.phase_keeper = None if time_shift is None else PhaseKeeper(time_shift)

    def _tell_worker(self, host: str, command: ShapeFlows) -> None:
        """What the coordinator of steps would send to a worker: marks and rates."""
        for name, tos in command.job_tos.items():
            for flow, sender in self._carried[name].out.items():
                if self._host(self.jobs[name].job.flow_by_id[flow].source) == host:
                    self._set_level(sender, self._levels[tos])
        for flow, tos in command.flow_tos.items():
            found = self._sender(flow)
            if found is not None:
                self._set_level(found[1], self._levels[tos])
        for flow, rate in command.rates.items():
            found = self._sender(flow)
            if found is not None:
                self._set_rate(*found, inf if rate is None else rate)

    # Looking things up

    def _present(self) -> list[FlowJob]:
        return [self._carried[live.job.name] for live in self.jobs.present()]

    def _sender(self, flow: str) -> tuple[FlowJob, FlowSender] | None:
        for running in self._present():
            if flow in running.out:
                return running, running.out[flow]
        return None

    def _host(self, port: str) -> str:
        return self._experiment.fabric.ports[port].host

    def _way(self, flow: Flow, decision: Decision) -> tuple[str, ...]:
        """The links of the path, and those between PCIe switch and NIC where they are shaped."""
        fabric = self._experiment.fabric
        source, target = fabric.ports[flow.source].nic, fabric.ports[flow.target].nic
        first = (fabric.nic_links[source][0].name,) if source in fabric.shaped_nics else ()
        last = (fabric.nic_links[target][1].name,) if target in fabric.shaped_nics else ()
        return (*first, *decision.paths[flow.id], *last)

    def _resume(self, stream: FlowSender) -> None:
        running, flow = self._at_place[stream.place]
        running.programs[self._host(flow.source)].resume(stream)
