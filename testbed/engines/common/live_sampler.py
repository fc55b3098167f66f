"""What can be told of a run while it goes on, from what is sampled anyway. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controller.decision import Decision
from testbed.engines.common.iterations import HostIteration
from testbed.engines.common.live_jobs import LiveJob, LiveJobs
from testbed.experiment.experiment import Experiment
from testbed.metrics.job_metrics import MeaningfulLevels
from testbed.results.record import DecisionRow, LinkRow
from testbed.watch.messages import JobState, LiveSample
from workloads.job import Job

MOST_LOADS: Final = 4000
"""Loads in a sample, the highest ones: a message should not be longer than the pipe that it goes through."""


@dataclass
class _GpuTime:
    """Seconds of GPUs in iterations that have ended."""

    busy_s: float = 0.0
    allocated_s: float = 0.0

    @property
    def utilization(self) -> float | None:
        return min(1.0, self.busy_s / self.allocated_s) if self.allocated_s > 0 else None


class LiveSampler:
    """Makes samples of the run of ``experiment``, whose jobs are ``jobs``; each looks only at what is new."""

    def __init__(self, experiment: Experiment, jobs: LiveJobs) -> None:
        self._experiment, self._jobs = experiment, jobs
        links = experiment.fabric.network_links
        self._index = {link.name: place for place, link in enumerate(links)}
        self._rates = [link.capacity for link in links]
        self._reports = self._rows = 0
        self._times: dict[str, _GpuTime] = defaultdict(_GpuTime)
        self._read_s = 0.0
        self._loads: tuple[int, ...] = ()
        self._decided: tuple[int, tuple[str, ...]] | None = None
        self._levels: dict[str, int | None] = {}

    def take(
        self, time_s: float, read_s: float, rows: Sequence[LinkRow], decisions: Sequence[DecisionRow]
    ) -> LiveSample:
        """Return the sample at ``time_s`` of the run; ``rows`` are all rows of links, read last at ``read_s``.

        ``decisions``: all that there were, the last is in force.
        """
        self._add_reports()
        self._add_rows(read_s, rows)
        routes = self._new_routes(decisions)
        total = _GpuTime(
            sum(time.busy_s for time in self._times.values()), sum(time.allocated_s for time in self._times.values())
        )
        return LiveSample(
            time_s=round(time_s, 3),
            utilization=_rounded(total.utilization),
            jobs=tuple(self._states()),
            loads=self._loads,
            routes=routes,
        )

    def _add_reports(self) -> None:
        reports = self._jobs.reports
        for report in reports[self._reports :]:
            if report.iteration >= self._experiment.measure.warmup:
                _add(self._times[report.job], report)
        self._reports = len(reports)

    def _add_rows(self, read_s: float, rows: Sequence[LinkRow]) -> None:
        """Turn what was sent since the counters were last read into loads; keep the last ones until they are again."""
        if read_s <= self._read_s:
            return
        sent: dict[tuple[int, int], float] = defaultdict(float)
        for row in rows[self._rows :]:
            if row.link in self._index:  # queues of PCIe are sampled too, and not drawn
                sent[self._index[row.link], row.level] += row.bytes
        duration_s = read_s - self._read_s
        thousandths = [
            (round(8000 * size / (self._rates[link] * duration_s)), link, level) for (link, level), size in sent.items()
        ]
        highest = sorted(load for load in thousandths if load[0] > 0)[-MOST_LOADS:]
        self._loads = tuple(number for share, link, level in highest for number in (link, level, share))
        self._read_s, self._rows = read_s, len(rows)

    def _states(self) -> Iterator[JobState]:
        """Jobs of the scenario in its order; of those under a manager the stints that are there."""
        if self._experiment.managed is not None:
            for live in self._jobs.present():
                yield self._state(live.job, live)
            return
        for job in self._experiment.jobs:
            yield self._state(job, self._jobs.get(job.name))

    def _state(self, job: Job, live: LiveJob | None) -> JobState:
        measure = self._experiment.measure
        planned = job.iterations
        if self._experiment.managed is None:
            planned = min(planned, measure.warmup + measure.iterations)
        time = self._times.get(job.name)
        return JobState(
            name=job.name,
            gpus=len(job.gpus),
            state="waiting" if live is None or not live.iterations else "ended" if live.ended else "running",
            level=self._levels.get(job.name),
            iterations=0 if live is None else live.completed,
            planned=planned,
            utilization=None if time is None else _rounded(time.utilization),
        )

    def _new_routes(self, decisions: Sequence[DecisionRow]) -> dict[str, tuple[int, ...]] | None:
        """Job -> its links, after a decision or when a job came or left; None in between. Levels change with them."""
        present = self._jobs.present_jobs()
        decided = len(decisions), tuple(job.name for job in present)
        if decided == self._decided:
            return None
        self._decided = decided
        decision = decisions[-1].decision if decisions else Decision()
        levels = MeaningfulLevels(present, self._experiment.levels)
        self._levels |= {job.name: levels.of(job, decision) for job in present}
        return {job.name: self._route(job, decision) for job in present}

    def _route(self, job: Job, decision: Decision) -> tuple[int, ...]:
        links = {link for flow in job.flows for link in decision.paths.get(flow.id, ())}
        return tuple(sorted(self._index[link] for link in links if link in self._index))


def _add(time: _GpuTime, report: HostIteration) -> None:
    """Add the GPUs of a host in one iteration; waits for the phase of a time shift count as idle."""
    length_s = report.phases[-1].end - report.phases[0].start + report.waited
    time.allocated_s += length_s * len(report.gpus)
    time.busy_s += sum(_busy_s(report))


def _busy_s(report: HostIteration) -> Iterable[float]:
    return (min(busy, phase.end - phase.start) for phase in report.phases for busy in phase.compute)


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
