"""One emulated run from inside its namespaces: bring the cluster up, measure, take it down."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Final

from testbed.engines.common.iterations import iteration_rows, late_spans, lateness_at_first, overlaps, windows
from testbed.engines.common.live_sampler import LiveSampler
from testbed.engines.common.managed_jobs import record_of
from testbed.engines.common.messages import EmptyPath, message_rows
from testbed.engines.common.requests import with_requests
from testbed.engines.common.stop_condition import StopCondition, stop_condition_of
from testbed.engines.common.worker_plan import window_packets
from testbed.engines.emulation.cluster import Cluster
from testbed.engines.emulation.evidence_rows import network_document, run_delay_rows, stretch_rows
from testbed.engines.emulation.external.external_jobs import ExternalJobs
from testbed.engines.emulation.failures import Failures
from testbed.engines.emulation.infrastructure import Infrastructure, Tell
from testbed.engines.emulation.namespaces.handover import Request
from testbed.engines.emulation.namespaces.liveness import Guard, Heartbeat
from testbed.engines.emulation.probes.dscp_check import old_marks_s, read_packets, wrong_marks
from testbed.engines.emulation.probes.pace import Pace
from testbed.engines.emulation.probes.packet_tap import PacketTap
from testbed.engines.emulation.probes.path_watch import PathWatch, compared_once
from testbed.engines.emulation.probes.process_watch import ProcessWatch
from testbed.engines.emulation.probes.sampler import Sampler
from testbed.engines.emulation.reconfiguration import log_times
from testbed.engines.emulation.rehearsing import measured_scale, record_without_run
from testbed.errors import RunFailedError
from testbed.experiment.rehearsal import Rehearsal
from testbed.experiment.rehearsed_scale import scale_document
from testbed.experiment.scale_search import TooBusyError
from testbed.fidelity.interference import Second, disturbed_spans
from testbed.fidelity.observations import Change, Standstill, joined_standstills
from testbed.fidelity.spreading import uneven
from testbed.fidelity.verdict import MAX_TIMER_LATENESS_S, Evidence, discarded_spans, judge
from testbed.results.record import IterationRow, RunRecord, Window
from testbed.watch.messages import LIVE, message_of

SAMPLE_S: Final = 1.0
EARLY_S: Final = 15.0
"""Until then a run that loads the machine too much ends, and begins again at another scale."""
MAX_EXTENSION: Final = 3.0
"""A run with disturbances goes on for at most this many times its undisturbed length."""
LIVE_SHARE: Final = 0.005
"""Share of a core that samples of a watched run may take: above it they are made less often."""
_MOST_REASONS: Final = 3
_CORES: Final = os.cpu_count() or 1
STATE_S: Final = 0.1
"""How often processes are looked at to see whether they are stopped."""


class Session:
    """Runs what is requested in the network and PID namespaces of this process; ``tell`` reports progress.

    What its processes log goes to standard error.
    """

    def __init__(self, request: Request, scratch: Path, tell: Tell) -> None:
        self._request = request
        self._experiment = request.experiment
        self._scratch, self._tell = scratch, tell
        self._heartbeat: Heartbeat
        self._tap: PacketTap
        self._paths: PathWatch
        self._processes: ProcessWatch
        self._seen = 0
        self._step_delays: list[float] = []
        self._old_marks: list[float] = []
        self._rehearsal: Rehearsal | None = None
        self._infrastructure = Infrastructure(request.experiment, scratch, tell)
        self._cluster: Cluster
        self._failures: Failures
        self._guard = Guard(self._ended, self._infrastructure.watched_processes)
        self._live: LiveSampler | None = None
        self._live_pace, self._live_cpu_s = Pace(LIVE_SHARE), 0.0
        self._goal: StopCondition
        self._programs: ExternalJobs | None = None

    async def run(self) -> RunRecord:
        """Bring up, measure, take down; return the record."""
        self._heartbeat = Heartbeat(self._tell)
        try:
            await self._guard.over(self._bring_up())
            if self._request.search.only:
                return record_without_run(self._experiment, self._scale_document())
            await self._guard.over(self._cluster.open_first())
            return await self._guard.over(self._measure())
        finally:
            self._heartbeat.measuring(False)
            await self._take_down()
            self._heartbeat.stop()

    def _ended(self) -> str | None:
        """Which process that the run needs has ended, in words."""
        ended = self._infrastructure.ended()
        return ended if ended or self._programs is None else self._programs.ended()

    async def _bring_up(self) -> None:
        """Bring everything up, at the scale that the rehearsal finds if there is one, the first jobs connected."""
        await self._infrastructure.bring_up()
        if demands := self._request.search.demands:
            found = await measured_scale(self._experiment, self._infrastructure, demands, self._tell)
            self._rehearsal, self._experiment = found
        experiment = self._experiment
        self._cluster = Cluster(experiment, self._infrastructure, self._scratch, self._tell)
        self._programs = self._cluster.programs
        self._failures = Failures(self._cluster, self._infrastructure.failing_parts(), experiment)
        self._live = LiveSampler(experiment, self._cluster.jobs) if self._request.watched else None
        self._goal = stop_condition_of(experiment, self._cluster.jobs, self._cluster.managed, self._cluster.now)

    async def _take_down(self) -> None:
        began = time.monotonic()
        if self._programs is not None:
            await self._programs.stop()
        await self._infrastructure.take_down()
        log_times("take-down", {"seconds": time.monotonic() - began})

    async def _measure(self) -> RunRecord:
        cluster = self._cluster
        await compared_once(cluster.switch_check)
        cluster.start_first_jobs()
        sampler = Sampler(cluster.network, self._experiment.scale, cluster.origin, self._failures.degraded_links)
        self._tap = PacketTap(cluster.network)
        self._processes = ProcessWatch(self._infrastructure.watched_processes(), 0.0)
        slack, rate = 2 * window_packets(self._experiment), sampler.probe.packets_in(1.0)
        self._paths = PathWatch(cluster.switch_check, lambda: cluster.steady_since, cluster.origin, slack, rate)
        watches = [asyncio.create_task(watch) for watch in (self._probe(sampler), self._paths.run())]
        later = [job for job in self._experiment.jobs if job.start_s > 0.0]
        arrivals = [asyncio.create_task(cluster.arrive_later(job)) for job in later]
        arrivals.append(asyncio.create_task(self._failures.live()))
        if cluster.managed_run is not None:
            arrivals.append(asyncio.create_task(cluster.managed_run.live()))
        try:
            self._let_measure(True)
            enough = await self._watch(sampler, [*arrivals, *watches])
        finally:
            self._let_measure(False)
            for task in [*watches, *arrivals]:
                task.cancel()
        end = time.monotonic()
        self._step_delays = list(cluster.steps.delays) if cluster.steps else []
        self._processes.finish(end - cluster.origin)
        self._tap.drain()
        self._tap.close()
        await cluster.end_all()
        wrong = await self._mismatches()
        return self._record(sampler, end, enough, wrong + await self._infrastructure.queue_mismatches())

    def _let_measure(self, now: bool) -> None:
        self._heartbeat.measuring(now)
        self._guard.waiting = not now

    async def _mismatches(self) -> list[str]:
        """What the switches and the packets on the wire did that was not decided."""
        cluster, fabric = self._cluster, self._experiment.fabric
        flows = [flow for live in cluster.jobs.values() for flow in live.job.flows]
        seen = await asyncio.to_thread(read_packets, self._tap.packets, fabric, flows, cluster.decision.ports)
        self._seen = len(seen)
        self._old_marks = old_marks_s(seen, cluster.marks)
        wrong = await self._paths.look(thorough=True) + wrong_marks(seen, cluster.marks)
        return wrong + uneven(cluster.switches.spread, self._experiment.load_balancing)

    async def _probe(self, sampler: Sampler) -> None:
        """Watch busy links and the state of processes closely until cancelled."""
        looked = 0.0
        while True:
            sampler.probe.poll()
            sampler.order.poll()
            now = time.monotonic()
            if now - looked >= STATE_S:
                looked = now
                self._processes.look(now - self._cluster.origin)
                sampler.cables.look(now - self._cluster.origin)
            await asyncio.sleep(sampler.probe.interval_s)

    async def _watch(self, sampler: Sampler, tasks: Sequence[asyncio.Task[None]]) -> bool:
        """Sample until every job has its iterations; return whether enough of them were undisturbed.

        What goes wrong in one of ``tasks`` is raised here.
        """
        cluster, dilation = self._cluster, self._experiment.scale.time
        limit = cluster.origin + self._experiment.measure.time_limit_s * dilation
        planned: float | None = None
        tick = cluster.origin
        changes: list[asyncio.Task[None]] = []
        while True:
            tick += SAMPLE_S
            await asyncio.sleep(max(0.0, tick - time.monotonic()))
            cluster.workers.check()
            for task in [*tasks, *changes]:
                if task.done():
                    task.result()
            now = time.monotonic()
            for _ in chain(sampler.sampling(now), self._tap.draining()):
                await asyncio.sleep(0)  # step events of jobs are handled in between
            phase, values = self._goal.progress()
            self._tell(phase, **values)
            self._tell_live(sampler, now)
            self._notice_early(sampler.seconds[-1])
            await asyncio.sleep(0)
            self._processes.sample(now - cluster.origin)
            sampler.cables.refuse_removed()
            gone = () if self._goal.managed else cluster.jobs.take_finished()
            changes += [asyncio.create_task(cluster.depart(live)) for live in gone]
            due = cluster.profiles_due(lambda: self._replaced(sampler))
            changes += [asyncio.create_task(cluster.profile(live, first)) for live, first in due]
            if self._goal.left() > 0 and cluster.throughput_due():
                changes.append(asyncio.create_task(cluster.measure_throughput()))
            if self._goal.left() == 0 and all(task.done() for task in changes):
                planned = planned or now - cluster.origin
                enough = self._undisturbed(sampler)
                if enough or self._goal.managed or now - cluster.origin > MAX_EXTENSION * planned:
                    return enough
            if now > limit:
                self._guard.refuse_stopped(now)
                self._refuse_if_short(sampler)
                return self._undisturbed(sampler)

    def _scale_document(self) -> dict[str, object]:
        return scale_document(self._experiment.scale, self._rehearsal, self._request.search.demands)

    def _notice_early(self, second: Second) -> None:
        """Raise ``TooBusyError`` if one of the first seconds left too little CPU by the run's own load."""
        if self._request.search.noticing and second.start_s < EARLY_S and second.starved and not second.disturbed:
            raise TooBusyError(second.idle, self._scale_document())

    def _tell_live(self, sampler: Sampler, now: float) -> None:
        """Tell how the run goes, if somebody watches it."""
        if self._live is None or not self._live_pace.is_due(now):
            return
        begun = time.thread_time()
        sample = self._live.take(self._cluster.now(), sampler.read_s, sampler.links, self._cluster.decisions)
        self._tell(LIVE, **message_of(sample))
        spent = time.thread_time() - begun
        self._live_pace.spent(now, spent)
        self._live_cpu_s += spent

    def _refuse_if_short(self, sampler: Sampler) -> None:
        """What was found wrong meanwhile is the likelier reason than a limit that is too low."""
        try:
            self._goal.refuse_if_short()
        except RunFailedError as error:
            found = "; ".join(list(dict.fromkeys(change.text for change in self._changes(sampler)))[:_MOST_REASONS])
            raise RunFailedError(f"{error}; found meanwhile: {found}" if found else str(error)) from error

    def _undisturbed(self, sampler: Sampler) -> bool:
        return self._goal.undisturbed(self._rows(sampler), self._cluster.jobs.reports)

    def _rows(self, sampler: Sampler) -> tuple[IterationRow, ...]:
        spans = self._disturbed(sampler) if self._goal.managed else self._replaced(sampler)
        rows = iteration_rows(self._cluster.jobs.reports, self._goal.experiment(), self._cluster.origin, spans)
        return self._failures.outages.kept(rows)

    def _replaced(self, sampler: Sampler) -> list[tuple[float, float]]:
        """When iterations ran that are replaced where that can be, on the machine's clock: late pauses too."""
        return self._disturbed(sampler) + late_spans(self._cluster.jobs.reports, MAX_TIMER_LATENESS_S)

    def _disturbed(self, sampler: Sampler) -> list[tuple[float, float]]:
        """When something took the CPU from the run for a time that nobody can tell, on the machine's clock."""
        spans = self._neighbours(sampler)
        if self._experiment.measure.discard_disturbed:
            spans += self._on_the_machines_clock(discarded_spans(self._seen_so_far(sampler)))
        return spans

    def _neighbours(self, sampler: Sampler) -> list[tuple[float, float]]:
        """When neighbours took the CPU, on the machine's clock."""
        spans = disturbed_spans(sampler.seconds, self._standstills(), self._processes.waits, _CORES)
        return self._on_the_machines_clock(spans)

    def _on_the_machines_clock(self, spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        origin = self._cluster.origin
        return [(origin + start, origin + end) for start, end in spans]

    def _standstills(self) -> list[Standstill]:
        """Processes that were stopped, and workers whose heartbeat came late, since the run began."""
        origin = self._cluster.origin
        late = [
            Standstill(worker, begin - origin, end - origin)
            for worker, begin, end in self._cluster.late_workers
            if begin >= origin
        ]
        return joined_standstills(late, self._processes.standstills)

    def _changes(self, sampler: Sampler) -> list[Change]:
        return [*self._failures.unasked([*sampler.cables.changes, *sampler.queues.changes]), *self._paths.changes]

    def _seen_so_far(self, sampler: Sampler) -> Evidence:
        """The evidence that is limited in time."""
        return Evidence(
            seconds=sampler.seconds,
            waits=self._processes.waits,
            standstills=self._standstills(),
            changes=self._changes(sampler),
            cores=_CORES,
        )

    def _record(self, sampler: Sampler, end: float, enough: bool, mismatches: list[str]) -> RunRecord:
        cluster = self._cluster
        rows, experiment = self._rows(sampler), self._goal.experiment()
        spans = windows(rows, experiment)
        evidence = self._evidence(sampler, spans, enough, mismatches)
        sampler.close()
        record = RunRecord(
            choice=self._experiment.scheduler,
            engine="emulation",
            duration_s=(end - cluster.origin) / self._experiment.scale.time,
            windows=spans,
            iterations=rows,
            messages=message_rows(cluster.jobs.reports, experiment, cluster.origin, cluster.decisions, EmptyPath()),
            links=tuple(sampler.links),
            decisions=tuple(cluster.decisions),
            fidelity=judge(evidence),
            environment=self._environment(sampler, evidence),
            managed=record_of(cluster.managed, (end - cluster.origin) / self._experiment.scale.time),
            programs=tuple(live.job for live in cluster.jobs.values() if live.job.external is not None),
        )
        return with_requests(record, cluster.jobs.reports, experiment, cluster.origin)

    def _evidence(self, sampler: Sampler, spans: dict[str, Window], enough: bool, mismatches: list[str]) -> Evidence:
        """What was seen from the first measured iteration on; timers do not count while neighbours took the CPU."""
        measure, dilation = self._experiment.measure, self._experiment.scale.time
        begin = min((span.start_s for span in spans.values()), default=0.0) * dilation
        neighbours = self._neighbours(sampler)
        limited = self._on_the_machines_clock(discarded_spans(self._seen_so_far(sampler)))
        left_out = [*neighbours, *(limited if measure.discard_disturbed else ())]
        reports = [
            report
            for report in self._cluster.jobs.reports
            if report.iteration >= measure.warmup and not overlaps(report, left_out)
        ]
        origin = self._cluster.origin
        late = late_spans(reports, MAX_TIMER_LATENESS_S)
        return replace(
            self._seen_so_far(sampler),
            seconds=[second for second in sampler.seconds if second.start_s >= begin],
            waits=[wait for wait in self._processes.waits if wait.start_s >= begin],
            standstills=[still for still in self._standstills() if still.to_s >= begin],
            timer_lateness_s=[report.late for report in reports],
            out_of_step_s=lateness_at_first(self._cluster.jobs.reports, self._experiment),
            late=[(start - origin, end - origin) for start, end in late],
            link_rates=sampler.probe.results(without=left_out),
            rate_spans={
                link: (stretches[0].begin - origin, stretches[-1].end - origin)
                for link, stretches in sampler.probe.stretches(without=left_out).items()
            },
            order=sampler.order.results(origin),
            queue_drops=sampler.queue_drops,
            other_drops=sampler.other_drops(),
            retransmits=self._cluster.retransmits,
            out_of_order=self._cluster.network.out_of_order_segments(),
            overtaking=self._cluster.overtaking,
            settings=mismatches,
            enough_undisturbed=enough,
            lossless=not self._experiment.loses_packets_by_design,
            dilation=dilation,
            end_s=max((second.time_s for second in sampler.seconds), default=0.0),
            discard=measure.discard_disturbed,
        )

    def _environment(self, sampler: Sampler, evidence: Evidence) -> dict[str, object]:
        """The evidence itself, for the run's directory."""
        network = self._cluster.network
        return {
            "timings_s": {**network.timings, **self._cluster.timings},
            "confirm_s": self._cluster.confirmations,
            **network_document(network, self._experiment.scale.time, sampler.against_tc),
            "workers": "first" if self._cluster.workers.served_first else "ordinary",
            "cpu": [[s.time_s, s.duration_s, s.idle, s.stolen, s.foreign, s.pressure] for s in sampler.seconds],
            "run_delay": run_delay_rows(self._processes.waits),
            "standstills": [[s.process, s.from_s, s.to_s] for s in evidence.standstills],
            "link_stretches": stretch_rows(sampler.probe, self._cluster.origin),
            "level_order": {link: asdict(order) for link, order in evidence.order.items()},
            "timers": [[r.phases[-1].end - self._cluster.origin, r.late] for r in self._cluster.jobs.reports],
            "link_rates": {link: [round(value, 5) for value in seen] for link, seen in evidence.link_rates.items()},
            "timer_lateness_s": list(evidence.timer_lateness_s),
            "out_of_order": evidence.out_of_order,
            "sampled_packets": self._seen,
            **self._cluster.switches.document(),
            "old_marks_s": self._old_marks,
            **self._failures.documents(),
            "phase_errors_s": self._cluster.jobs.phase_errors(self._cluster.decision, self._cluster.origin),
            "step_delays_s": self._step_delays,
            **self._scale_document(),
            **({"external": rows} if (rows := self._cluster.programs.rows()) else {}),
            **({} if self._live is None else {"watch_cpu_s": round(self._live_cpu_s, 4)}),
        }
