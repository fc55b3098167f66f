"""One emulated run from inside its namespaces: bring up, let jobs arrive, measure, take down."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from controller.decision import Decision
from testbed.engine.collect import HostIteration, PhaseTimes, iteration_rows, undisturbed_iterations, windows
from testbed.engine.controller_process import ControllerProcess, decision_of
from testbed.engine.plan import hosts_of, job_plans, tos_of_flows
from testbed.engine.sampler import Sampler
from testbed.engine.workers import Event, WorkerPool
from testbed.errors import RunFailedError
from testbed.experiment import Experiment
from testbed.fidelity import Evidence, disturbed_spans, judge
from testbed.record import DecisionRow, IterationRow, RunRecord
from topologies.mininet_adapter.network import EmulatedNetwork, NetworkSettings
from topologies.mininet_adapter.readback import queue_mismatches
from workloads.job import Job

QUEUE_BYTES: Final = 32 << 20
"""Room in each emulated queue: never full, it stands for a lossless fabric."""
SAMPLE_S: Final = 1.0
MAX_EXTENSION: Final = 3.0
"""A run that meets disturbances goes on for at most this many times its undisturbed length."""
START_DELAY_S: Final = 0.1


@dataclass
class _Running:
    """What is known of a job that has arrived."""

    job: Job
    iterations: dict[str, int] = field(default_factory=dict)
    ended: bool = False

    @property
    def completed(self) -> int:
        """Iterations that all hosts have ended."""
        return min(self.iterations.values(), default=0)


class Session:
    """Runs ``experiment`` in the network and PID namespaces of this process.

    ``tell(phase, **values)`` reports progress. ``directory`` takes the logs.
    """

    def __init__(self, experiment: Experiment, directory: Path, scratch: Path, tell: Any) -> None:
        self._experiment = experiment
        self._tell = tell
        settings = NetworkSettings(
            bandwidth_scale=experiment.scale.bandwidth,
            mtu=experiment.scale.mtu,
            levels=experiment.levels,
            buffer=QUEUE_BYTES,
        )
        log = directory / "testbed.log"
        self._network = EmulatedNetwork(experiment.fabric, settings, scratch / "openvswitch")
        self._controller = ControllerProcess(
            experiment.scheduler, experiment.scheduler_options, experiment.levels, experiment.seed, log
        )
        self._workers = WorkerPool(self._on_event, log)
        self._jobs: dict[str, _Running] = {}
        self._reports: list[HostIteration] = []
        self._decisions: list[DecisionRow] = []
        self._decision = Decision()
        self._origin = 0.0
        self._retransmits = 0
        self._timings: dict[str, float] = {}
        self._confirmations: list[float] = []
        self._changing = asyncio.Lock()

    async def run(self) -> RunRecord:
        """Bring up, measure, take down; return the record."""
        try:
            await self._bring_up()
            return await self._measure()
        finally:
            await self._take_down()

    # Bringing up

    async def _bring_up(self) -> None:
        self._tell("set up", note="namespaces and links")
        began = time.monotonic()
        await self._controller.spawn()
        self._network.start_hosts()
        await self._controller.ready()
        self._network.start_switches(self._controller.openflow_target)
        self._timings["network"] = time.monotonic() - began
        self._tell("set up", note="workers and switches")
        namespaces = {host: self._network.host_pid(host) for host in self._hosts()}
        workers = asyncio.create_task(self._workers.start(namespaces))
        await self._controller.set_fabric(self._experiment.fabric)
        await self._controller.wait_for_switches(list(self._experiment.fabric.switches))
        self._timings["connected"] = time.monotonic() - began
        await workers
        self._tell("set up", note="jobs and rules")
        initial = [job for job in self._experiment.jobs if job.start_s <= 0.0]
        for job in initial:
            await self._announce(job, prepare=False)
        self._timings["programmed"] = time.monotonic() - began
        for job in initial:
            await self._set_up(job)
        self._network.openvswitch.enlarge_buffers()
        mismatches = await asyncio.to_thread(queue_mismatches, self._network)
        if mismatches:
            raise RunFailedError(f"the network is not as set: {mismatches[0]}")
        self._timings["set up"] = time.monotonic() - began
        self._log("timings", {**self._network.timings, **self._timings})

    def _hosts(self) -> list[str]:
        return list(dict.fromkeys(host for job in self._experiment.jobs for host in self._hosts_of(job)))

    def _hosts_of(self, job: Job) -> tuple[str, ...]:
        return hosts_of(job, self._experiment.fabric)

    async def _announce(self, job: Job, *, prepare: bool) -> dict[str, Any]:
        """Tell the controller that ``job`` arrives; its rules stand when this returns."""
        began = time.monotonic()
        answer = await self._controller.arrive(job, prepare=prepare)
        self._jobs[job.name] = _Running(job)
        self._note_decision(f"arrival of {job.name}", answer, began)
        return answer

    def _note_decision(self, cause: str, answer: dict[str, Any], began: float) -> None:
        self._decision = decision_of(answer)
        confirmed = time.monotonic() - began
        self._confirmations.append(confirmed)
        self._decisions.append(DecisionRow(self._now(), cause, self._decision, confirmed))

    def _now(self) -> float:
        """Undilated seconds since the jobs began; 0 before."""
        return max(0.0, time.monotonic() - self._origin) / self._experiment.scale.time if self._origin else 0.0

    async def _set_up(self, job: Job) -> None:
        """Open the connections of ``job``."""
        tos = tos_of_flows(self._decision, job.flows, self._experiment.levels)
        hosts = self._hosts_of(job)
        for host, plan in job_plans(job, self._experiment, tos).items():
            self._workers.tell(host, {"op": "job", "job": plan})
        await self._workers.expect("listening", job.name, hosts)
        for host in hosts:
            self._workers.tell(host, {"op": "connect", "job": job.name})
        await self._workers.expect("connected", job.name, hosts)

    def _start(self, job: Job, at: float) -> None:
        self._jobs[job.name].iterations = dict.fromkeys(self._hosts_of(job), 0)
        for host in self._hosts_of(job):
            self._workers.tell(host, {"op": "start", "job": job.name, "at": at})

    # Measuring

    async def _measure(self) -> RunRecord:
        self._origin = time.monotonic() + START_DELAY_S
        sampler = Sampler(self._network, self._experiment.scale, self._origin)
        for running in self._jobs.values():
            self._start(running.job, self._origin)
        probing = asyncio.create_task(self._probe(sampler))
        arrivals = [asyncio.create_task(self._arrive_later(j)) for j in self._experiment.jobs if j.start_s > 0.0]
        try:
            enough = await self._watch(sampler, arrivals)
        finally:
            for task in [probing, *arrivals]:
                task.cancel()
        end = time.monotonic()
        await self._note_taken_paths()
        left = [running.job for running in self._jobs.values() if not running.ended]
        for job in left:
            self._halt(job)
        for job in left:
            await self._close(job)
        mismatches = await asyncio.to_thread(queue_mismatches, self._network)
        return await self._record(sampler, end, enough, mismatches)

    async def _watch(self, sampler: Sampler, arrivals: Sequence[asyncio.Task[None]]) -> bool:
        """Sample until every job has its iterations; return whether enough of them were undisturbed."""
        measure, dilation = self._experiment.measure, self._experiment.scale.time
        limit = self._origin + measure.limit_s * dilation
        first_end: float | None = None
        tick = self._origin
        departures: list[asyncio.Task[None]] = []
        while True:
            tick += SAMPLE_S
            await asyncio.sleep(max(0.0, tick - time.monotonic()))
            self._workers.check()
            for task in [*arrivals, *departures]:
                if task.done():
                    task.result()
            now = time.monotonic()
            sampler.sample(now)
            self._report_progress(now)
            departures += [asyncio.create_task(self._depart(running)) for running in self._finished()]
            if self._wanted_left() == 0 and all(task.done() for task in departures):
                first_end = first_end or now
                if self._undisturbed(sampler) or now - self._origin > MAX_EXTENSION * (first_end - self._origin):
                    return self._undisturbed(sampler)
            if now > limit:
                self._refuse_if_short()
                return self._undisturbed(sampler)

    @staticmethod
    async def _probe(sampler: Sampler) -> None:
        """Watch busy links closely until cancelled."""
        while True:
            sampler.probe.poll()
            await asyncio.sleep(sampler.probe.interval_s)

    def _wanted(self) -> int:
        return self._experiment.measure.warmup + self._experiment.measure.iterations

    def _wanted_left(self) -> int:
        """Iterations that the slowest job still lacks."""
        if len(self._jobs) < len(self._experiment.jobs):
            return self._wanted()
        lacking = (min(self._wanted(), r.job.iterations) - r.completed for r in self._jobs.values() if not r.ended)
        return max(0, max(lacking, default=0))

    def _refuse_if_short(self) -> None:
        measure = self._experiment.measure
        for running in self._jobs.values():
            if running.completed <= measure.warmup + 1 and not running.ended:
                raise RunFailedError(
                    f"job {running.job.name} made {running.completed} iterations in {measure.limit_s:g} s, "
                    f"{self._wanted()} were asked for: raise measure.limit"
                )

    def _undisturbed(self, sampler: Sampler) -> bool:
        rows = self._rows(sampler)
        counts = undisturbed_iterations(rows, self._experiment.measure.warmup)
        wanted = self._experiment.measure.iterations
        return all(
            counts.get(running.job.name, 0) >= min(wanted, running.job.iterations - self._experiment.measure.warmup)
            for running in self._jobs.values()
        )

    def _rows(self, sampler: Sampler) -> tuple[IterationRow, ...]:
        spans = [(self._origin + start, self._origin + end) for start, end in disturbed_spans(sampler.seconds)]
        return iteration_rows(self._reports, self._experiment, self._origin, spans)

    def _report_progress(self, now: float) -> None:
        left, wanted = self._wanted_left(), self._wanted()
        slowest = min(self._jobs.values(), key=lambda running: running.completed, default=None)
        warm = all(running.completed >= self._experiment.measure.warmup for running in self._jobs.values())
        note = "" if slowest is None else f"{slowest.job.name} {slowest.completed}/{wanted} iterations"
        self._tell("measure" if warm else "warm up", value=wanted - left, total=wanted, note=note)

    def _on_event(self, host: str, event: Event) -> None:
        if event["event"] == "closed":
            self._retransmits += event["retransmits"]
        if event["event"] != "iteration":
            return
        running = self._jobs[event["job"]]
        running.iterations[host] = event["iteration"] + 1
        gpus = tuple(gpu for gpu in running.job.gpus if self._experiment.fabric.host_of_gpu[gpu] == host)
        phases = tuple(PhaseTimes(row[0], row[1], row[2], row[3], tuple(row[4:])) for row in event["phases"])
        self._reports.append(HostIteration(event["job"], host, gpus, event["iteration"], phases, event["late"]))

    # Arrival and change while other jobs run

    async def _arrive_later(self, job: Job) -> None:
        at = self._origin + job.start_s * self._experiment.scale.time
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        async with self._changing:
            answer = await self._announce(job, prepare=True)
            await self._carry_out_changes(answer)
        await self._set_up(job)
        self._start(job, time.monotonic() + START_DELAY_S)

    async def _carry_out_changes(self, answer: dict[str, Any]) -> None:
        """Change path and level of running flows, each between two of its messages with nothing in flight."""
        changed = [c["flow"] for c in answer["changes"] if c["path_changed"] or c["level_changed"]]
        flows = {flow.id: flow for running in self._jobs.values() for flow in running.job.flows}
        await asyncio.gather(*(self._change(flows[name]) for name in changed))

    async def _change(self, flow: Any) -> None:
        ports = self._experiment.fabric.ports
        sender, receiver = ports[flow.source].host, ports[flow.target].host
        tos = tos_of_flows(self._decision, (flow,), self._experiment.levels)
        self._workers.tell(sender, {"op": "hold", "flows": [flow.id]})
        await self._workers.expect("held", flow.id, [sender])
        await self._controller.commit([flow.id])
        self._workers.tell(receiver, {"op": "mark", "flows": tos})
        self._workers.tell(sender, {"op": "resume", "flows": tos})

    def _finished(self) -> list[_Running]:
        """Jobs that have made all their iterations since the last call."""
        found = [r for r in self._jobs.values() if not r.ended and r.completed >= r.job.iterations]
        for running in found:
            running.ended = True
        return found

    async def _depart(self, running: _Running) -> None:
        """Close a job's connections and let the controller decide anew for those that stay."""
        await self._close(running.job)
        async with self._changing:
            began = time.monotonic()
            answer = await self._controller.depart(running.job.name, prepare=True)
            self._note_decision(f"departure of {running.job.name}", answer, began)
            await self._carry_out_changes(answer)

    # The end

    def _halt(self, job: Job) -> None:
        for host in self._hosts_of(job):
            self._workers.tell(host, {"op": "halt", "job": job.name})

    async def _close(self, job: Job) -> None:
        hosts = self._hosts_of(job)
        for host in hosts:
            self._workers.tell(host, {"op": "close", "job": job.name})
        await self._workers.expect("closed", job.name, hosts)

    async def _note_taken_paths(self) -> None:
        """Where switches chose paths themselves, put what they chose on record."""
        if not self._decision.hashed:
            return
        taken = {flow: tuple(path) for flow, path in (await self._controller.taken_paths())["taken"].items() if path}
        self._decision = replace(self._decision, paths={**self._decision.paths, **taken}, hashed=())
        self._decisions.append(DecisionRow(self._now(), "paths read back from the switches", self._decision))

    async def _record(self, sampler: Sampler, end: float, enough: bool, mismatches: list[str]) -> RunRecord:
        rows = self._rows(sampler)
        spans = windows(rows, self._experiment)
        dilation, warmup = self._experiment.scale.time, self._experiment.measure.warmup
        begin = min((span.start_s for span in spans.values()), default=0.0) * dilation
        measured = [second for second in sampler.seconds if second.time_s - second.duration_s >= begin]
        disturbed = {(row.job, row.iteration) for row in rows if row.disturbed}
        lateness = [
            report.late
            for report in self._reports
            if report.iteration >= warmup and (report.job, report.iteration) not in disturbed
        ]
        evidence = Evidence(
            seconds=measured,
            timer_lateness_s=lateness,
            link_rates=sampler.probe.results(),
            queue_drops=sampler.queue_drops,
            other_drops=sampler.other_drops(),
            retransmits=self._retransmits,
            out_of_order=self._network.out_of_order_segments(),
            settings=mismatches,
            enough_undisturbed=enough,
        )
        sampler.close()
        return RunRecord(
            scheduler=self._experiment.scheduler,
            engine="emulation",
            duration_s=(end - self._origin) / dilation,
            windows=spans,
            iterations=rows,
            links=tuple(sampler.links),
            decisions=tuple(self._decisions),
            fidelity=judge(evidence),
            environment=self._environment(sampler, evidence),
        )

    def _environment(self, sampler: Sampler, evidence: Evidence) -> dict[str, object]:
        return {
            "timings_s": {**self._network.timings, **self._timings},
            "confirm_s": self._confirmations,
            "datapath": "kernel" if self._network.settings.kernel_datapath else "userspace",
            "priority_queues": self._network.settings.discipline,
            "cpu": [[s.time_s, s.duration_s, s.idle, s.stolen, s.foreign] for s in sampler.seconds],
            "link_rates": {link: [round(value, 5) for value in seen] for link, seen in evidence.link_rates.items()},
            "timer_lateness_s": list(evidence.timer_lateness_s),
        }

    async def _take_down(self) -> None:
        began = time.monotonic()
        await self._workers.stop()
        await self._controller.stop()
        self._network.stop()
        self._log("take-down", {"seconds": time.monotonic() - began})

    def _log(self, what: str, values: dict[str, float]) -> None:
        text = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
        print(f"{what}: {text}", file=sys.stderr)


def main(request: Path) -> int:
    """Run the pickled (experiment, directory) of ``request``; write the record beside it. In the namespaces."""
    from testbed.engine.handover import read_request, write_answer

    experiment, directory = read_request(request)
    scratch = Path("/run/testbed")
    scratch.mkdir(parents=True)

    def tell(phase: str, **values: Any) -> None:
        os.write(1, json.dumps({"phase": phase, **values}).encode() + b"\n")

    answer: RunRecord | Exception
    try:
        answer = asyncio.run(Session(experiment, directory, scratch, tell).run())
    except Exception as error:
        answer = error
    write_answer(request, answer)
    return 0
