"""A cluster whose packets are fluids or simulated: the jobs' own programs on a clock that jumps from event to event.

Hosts run the same state machines as the workers of an emulation (:class:`JobProgram`), steps and
shifts follow the same rules, and decisions come from the same schedulers; only the links are
computed. Times are seconds of the scenario, sizes bytes.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Final

from controller.decider import Decider, with_hashed_paths
from controller.decision import Decision, LinkDown, LinkUp, Scheduler
from controller.schedulers.registry import create
from testbed.engines.common.live_jobs import LiveJobs
from testbed.engines.common.managed_jobs import ManagedJobs
from testbed.engines.common.mark_log import MarkLog
from testbed.engines.common.profiling import measure_profile
from testbed.engines.common.step_coordinator import StepCoordinator
from testbed.engines.common.worker_plan import job_plans, slice_size
from testbed.engines.flow.failures import FlowFailures
from testbed.engines.flow.flow_job import FlowJob, Program
from testbed.engines.flow.in_force import InForce
from testbed.engines.flow.link_rows import link_rows
from testbed.engines.flow.networks.create import LATENCY_S, create_network
from testbed.engines.flow.networks.network import PacketCounts
from testbed.engines.flow.streams import FlowReceiver, FlowSender
from testbed.experiment.experiment import UNSCALED, Experiment
from testbed.results.record import DecisionRow, LinkRow
from topologies.fabric import Fabric
from workloads.iteration.from_plan import program_of
from workloads.iteration.pcie_semaphore import PcieSemaphore
from workloads.iteration.protocol import Event, HostStep, IterationEnded, ShapeFlows, Tell
from workloads.iteration.shared_gpus import SharedGpus
from workloads.job import Flow, Job

SAMPLE_S: Final = 1.0


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
        self._timers: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()
        self._pcie: dict[str, PcieSemaphore[FlowSender]] = {}
        self._gpus: dict[str, SharedGpus] = {}
        self._in_force = InForce(experiment, self._network, self._pcie, self._present)
        self._at_place: dict[int, tuple[FlowJob, Flow]] = {}
        self.now = 0.0
        self.events = 0
        self._cancelled: set[str] = set()
        self._wakes_s = inf
        self.jobs = LiveJobs(experiment)
        self._carried: dict[str, FlowJob] = {}
        self.decisions: list[DecisionRow] = []
        self.links: list[LinkRow] = []
        self._packets: dict[str, PacketCounts] = {}
        self._left_packets: dict[str, PacketCounts] = {}
        self.managed: ManagedJobs | None = None
        if experiment.managed is not None:
            self.managed = ManagedJobs(experiment.managed, fabric, experiment.seed)
            self._wake_at(self.managed.next_s())
        for job in experiment.jobs:
            self._expect(job)
        self.failures = FlowFailures(self, self._network, experiment)
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
            running.programs[self._host(flow.source)].resume(sender)

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
        before = self._left_packets.get(running.job.name, PacketCounts())
        counts = sum((self._network.counts_of(each.place) for each in running.out.values()), before)
        self._packets[running.job.name] = counts

    # Jobs

    def _expect(self, job: Job) -> None:
        self.at(job.start_s, lambda _late: self._arrive(job))

    def manage(self) -> None:
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
            self.manage()

    def _end(self, running: FlowJob) -> None:
        """All iterations are made."""
        if running.live.ended:
            return
        self._depart(running)
        if self.managed is not None:
            self.managed.ended(running.job.name, self.now)
            self.manage()

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
        self.failures.settle()

    # Failures

    def links_changed(self, left: Fabric, event: LinkDown | LinkUp, cause: str) -> None:
        """Paths are decided again at once: what detection and the controller take is not modelled."""
        self._in_force.left = left
        decision = self._decider.links_changed(left, event)
        self._note(cause, decision)
        self.carry_out(decision)

    def cut_off(self) -> frozenset[str]:
        """Names of jobs that cannot communicate."""
        return frozenset(self._decider.decision.cut_off) if self.failures.expected else frozenset()

    def stop(self, name: str) -> None:
        """End the processes of a job, which does not leave."""
        running = self._carried[name]
        if not running.live.stopped:
            running.live.stopped = True
            self._close(running)
            self._settle_steps()

    def restart(self, name: str) -> None:
        """Start a stopped job again."""
        running, decision = self._carried[name], self._decider.decision
        self.jobs.restart(name)
        self._open(running, decision)
        self._settle_steps()
        self.carry_out(decision)
        for program in running.programs.values():
            program.start(self.now)

    def _open(self, running: FlowJob, decision: Decision) -> None:
        job, departure_s = running.job, self._network.departure_s(running.job)
        slice_bytes = self._scaled.scale.unscale_size(slice_size(job, self._scaled))
        for host, plan in job_plans(
            job, self._experiment, decision, steps=self._steps is not None, first=running.live.first
        ).items():
            program: Program = program_of(
                replace(plan, departure=departure_s), self, self._hear(host), lambda _stream: None
            )
            program.link_is_busy = lambda flow: self._network.link_is_busy(running.out[flow].place)
            program.pcie = self._pcie.setdefault(host, PcieSemaphore(self._resume))
            program.gpus = self._gpus.setdefault(host, SharedGpus()).share_of(job.name, plan.gpus)
            running.programs[host] = program
        for flow in job.flows:
            level = decision.level_of(flow, self._experiment.levels - 1)
            place = self._network.add(self._in_force.way(flow, decision), level, slice_bytes)
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
        self.failures.left(running.job.name)
        decision = self._decider.depart(running.job.name)
        self._note(f"departure of {running.job.name}", decision)
        self.carry_out(decision)

    def _close(self, running: FlowJob) -> None:
        self._count(running)
        self._left_packets[running.job.name] = self._packets[running.job.name]
        for program in running.programs.values():
            program.halt()
        for sender in running.out.values():
            self._network.remove(sender.place)
            del self._at_place[sender.place]
        running.forget()

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
        self._settle_steps()

    def _settle_steps(self) -> None:
        if self._steps is not None:
            self._steps.set_jobs({running.job.name: running.job for running in self._present()})

    def carry_out(self, decision: Decision) -> None:
        """Put ``decision`` in force for the jobs that run."""
        self._in_force.carry_out(decision)

    def _tell_worker(self, host: str, command: ShapeFlows) -> None:
        self._in_force.tell_worker(host, command)

    # Looking things up

    def _present(self) -> list[FlowJob]:
        return [self._carried[live.job.name] for live in self.jobs.present() if not live.stopped]

    def _host(self, port: str) -> str:
        return self._experiment.fabric.ports[port].host

    def _resume(self, stream: FlowSender) -> None:
        running, flow = self._at_place[stream.place]
        running.programs[self._host(flow.source)].resume(stream)
