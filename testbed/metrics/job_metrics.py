"""From the rows of a run to its numbers: utilisation, idle time by cause, iteration times, JCT.

Pure. A GPU's time inside its job's window is split into compute, exposed communication, waiting for
a peer, and the rest, which is waiting to start; the four add up to the time it was allocated. A GPU that
several jobs share is idle for each of them while it computes for another; over all jobs it counts once. An
iteration that straddles the window's edge counts with the part inside. A disturbed iteration (the
machine's doing, flagged by the engine) is taken out whole, on all GPUs of its job, and counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from controller.decision import Decision
from testbed.metrics.outage_metrics import JobOutages, outages_in
from testbed.results.record import IterationRow, RunRecord, Window
from workloads.job import Job

Floats = NDArray[np.float64]
CAUSES: Final = ("exposed", "straggler", "start")


@dataclass(frozen=True, slots=True)
class IterationTimes:
    """Seconds over the undisturbed iterations in the window."""

    mean: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """One job in its window. GPU times are seconds summed over its GPUs; ``times`` is None if no iteration fits.

    ``counted``: undisturbed iteration -> the share of it that lies in the window, mean over the GPUs.
    """

    job: Job
    iterations: int
    disturbed: int
    times: IterationTimes | None
    allocated_s: float
    busy_s: float
    idle_s: Mapping[str, float]
    work_flop: float
    jct_s: float | None
    jct_source: Literal["measured", "projected"]
    counted: Mapping[int, float] = field(default_factory=dict)

    @property
    def utilization(self) -> float:
        """Busy / allocated time, 0 to 1; 0 when nothing was allocated."""
        return min(1.0, self.busy_s / self.allocated_s) if self.allocated_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _Columns:
    """The rows of one job, a column each; ``iteration`` numbers them, ``fraction`` is the part in the window."""

    iteration: NDArray[np.int64]
    start: Floats
    end: Floats
    compute: Floats
    exposed: Floats
    straggler: Floats
    disturbed: NDArray[np.bool_]
    fraction: Floats


def job_metrics(record: RunRecord, job: Job) -> JobMetrics:
    """The numbers of one job."""
    rows = [row for row in record.iterations if row.job == job.name]
    window = record.windows.get(job.name)
    if window is None or not rows:
        empty = 0.0 if window is None else (window.end_s - window.start_s) * len(job.gpus)
        return JobMetrics(
            job, 0, 0, None, empty, 0.0, dict.fromkeys(CAUSES, 0.0) | {"start": empty}, 0.0, None, "projected"
        )
    table = _columns(rows, window)
    durations, disturbed = _iteration_durations(table, len(job.gpus), window)
    times = _times(durations)
    good = ~table.disturbed
    idle = _idle(table, (window.end_s - window.start_s) * len(job.gpus))
    busy = float(np.sum((table.compute * table.fraction)[good]))
    jct_s, jct_source = _jct(table, job, times, outages_in(record, job.name))
    return JobMetrics(
        job=job,
        iterations=len(durations),
        disturbed=disturbed,
        times=times,
        allocated_s=busy + sum(idle.values()),
        busy_s=busy,
        idle_s=idle,
        work_flop=job.flops * float(np.sum(table.fraction[good])) / len(job.gpus),
        jct_s=jct_s,
        jct_source=jct_source,
        counted=_counted(table, len(job.gpus)),
    )


def durations_of(record: RunRecord, job: Job) -> list[float]:
    """Seconds of each whole undisturbed iteration of the job in its window."""
    rows = [row for row in record.iterations if row.job == job.name]
    window = record.windows.get(job.name)
    return _iteration_durations(_columns(rows, window), len(job.gpus), window)[0] if window and rows else []


def shared_gpu_s(jobs: Iterable[Job], windows: Mapping[str, Window]) -> float:
    """GPU-seconds that the sum over the windows of ``jobs`` counts more than once, where jobs share GPUs."""
    spans: dict[str, list[Window]] = defaultdict(list)
    for job in jobs:
        if job.name in windows:
            for gpu in job.gpus:
                spans[gpu].append(windows[job.name])
    return sum(_counted_twice_s(each) for each in spans.values() if len(each) > 1)


def _counted_twice_s(windows: Sequence[Window]) -> float:
    twice_s, until_s = 0.0, -inf
    for window in sorted(windows, key=lambda each: each.start_s):
        twice_s += max(0.0, min(until_s, window.end_s) - window.start_s)
        until_s = max(until_s, window.end_s)
    return twice_s


def decision_for(record: RunRecord, job: Job) -> Decision:
    """The last decision that says anything about ``job``; the default one if none does."""
    for row in reversed(record.decisions):
        if _is_about(row.decision, job):
            return row.decision
    return record.decisions[-1].decision if record.decisions else Decision()


def _is_about(decision: Decision, job: Job) -> bool:
    known = decision.paths, decision.levels
    return job.name in decision.levels or any(flow.id in keys for flow in job.flows for keys in known)


def level_of(job: Job, decision: Decision, levels: int) -> int | None:
    """The level at which the job sends; the highest of its flows' where they differ; None if it sends nothing."""
    return min((decision.level_of(flow, levels - 1) for flow in job.flows), default=None)


class MeaningfulLevels:
    """Levels of jobs as far as they mean something, for ``jobs`` on ``levels`` priority levels.

    A job has no level where the scheduler gave none to it or its flows, where its level follows the bytes of each
    message, and where all the jobs that one decision is about send at one and the same level: then no packet
    overtakes another.
    """

    def __init__(self, jobs: Sequence[Job], levels: int) -> None:
        self._jobs, self._levels = jobs, levels
        self._ordering: dict[int, tuple[Decision, bool]] = {}

    def of(self, job: Job, decision: Decision) -> int | None:
        """The level of ``job`` under ``decision``; None if it has none."""
        given = job.name in decision.levels or any(flow.id in decision.levels for flow in job.flows)
        by_bytes = any(decision.byte_levels_of(flow) is not None for flow in job.flows)
        if not given or by_bytes or not self._orders(decision):
            return None
        return level_of(job, decision, self._levels)

    def _orders(self, decision: Decision) -> bool:
        """Whether two flows that ``decision`` is about have different levels, or one a level by bytes."""
        if id(decision) not in self._ordering:
            flows = [flow for job in self._jobs if _is_about(decision, job) for flow in job.flows]
            used = {decision.level_of(flow, self._levels - 1) for flow in flows}
            # It is kept beside the answer, for another decision may have the identity of one that is gone.
            self._ordering[id(decision)] = decision, len(used) > 1 or bool(decision.byte_levels)
        return self._ordering[id(decision)][1]


def intensity_of(job: Job, decision: Decision) -> float | None:
    """The job's intensity as the scheduler noted it, FLOP/s; None if it did not."""
    for key in ("intensity", "intensities"):
        noted = decision.notes.get(key)
        value = noted.get(job.name) if isinstance(noted, Mapping) else None
        if isinstance(value, int | float):
            return float(value)
    return None


def profile_of(job: Job, decision: Decision) -> str | None:
    """The profile of the job that the scheduler used, ``declared`` or ``measured``; None if neither."""
    noted = decision.notes.get("profile")
    value = noted.get(job.name) if isinstance(noted, Mapping) else None
    return value if isinstance(value, str) else None


def _columns(rows: Sequence[IterationRow], window: Window) -> _Columns:
    start = np.array([row.start_s for row in rows])
    end = np.array([row.end_s for row in rows])
    length = end - start
    inside = np.clip(np.minimum(end, window.end_s) - np.maximum(start, window.start_s), 0.0, None)
    iteration = np.array([row.iteration for row in rows])
    flagged = np.unique(iteration[np.array([row.disturbed for row in rows])])
    return _Columns(
        iteration=iteration,
        start=start,
        end=end,
        compute=np.array([row.compute_s for row in rows]),
        exposed=np.array([row.exposed_s for row in rows]),
        straggler=np.array([row.straggler_s for row in rows]),
        disturbed=np.isin(iteration, flagged),
        fraction=np.divide(inside, length, out=np.zeros_like(length), where=length > 0),
    )


def _iteration_durations(table: _Columns, gpus: int, window: Window) -> tuple[list[float], int]:
    """Mean time over the GPUs of each whole undisturbed iteration in the window; number of disturbed ones.

    An iteration belongs to the window if its middle, averaged over the GPUs, does: GPUs of a job are
    a little apart, so its first iteration may begin before the window on some of them.
    """
    durations, disturbed = [], 0
    for number in np.unique(table.iteration):
        rows = table.iteration == number
        middle = float(np.mean(table.start[rows] + table.end[rows])) / 2
        if not window.start_s <= middle <= window.end_s or int(np.sum(rows)) < gpus:
            continue
        if bool(np.any(table.disturbed[rows])):
            disturbed += 1
        else:
            durations.append(float(np.mean(table.end[rows] - table.start[rows])))
    return durations, disturbed


def _times(durations: Sequence[float]) -> IterationTimes | None:
    if not durations:
        return None
    p50, p99 = (float(value) for value in np.percentile(durations, [50, 99]))
    return IterationTimes(float(np.mean(durations)), p50, p99)


def _idle(table: _Columns, window_s: float) -> dict[str, float]:
    good = ~table.disturbed
    length = (table.end - table.start) * table.fraction
    allocated = window_s - float(np.sum(length[~good]))
    explained = table.compute + table.exposed + table.straggler  # the rest of a row is waiting for its phase
    covered = float(np.sum((explained * table.fraction)[good]))
    return {
        "exposed": float(np.sum((table.exposed * table.fraction)[good])),
        "straggler": float(np.sum((table.straggler * table.fraction)[good])),
        "start": max(0.0, allocated - covered),
    }


def _counted(table: _Columns, gpus: int) -> dict[int, float]:
    good = ~table.disturbed & (table.fraction > 0.0)
    numbers, place = np.unique(table.iteration[good], return_inverse=True)
    shares = np.bincount(place, weights=table.fraction[good], minlength=len(numbers)) / gpus
    return dict(zip(numbers.tolist(), shares.tolist(), strict=True))


def _jct(
    table: _Columns, job: Job, times: IterationTimes | None, outages: JobOutages
) -> tuple[float | None, Literal["measured", "projected"]]:
    """From the job's arrival to its end: measured if its declared iterations are all in, else projected.

    What failures cost counts once: the mean that is projected is that of iterations which they did not stop.
    """
    iterations = job.iterations + outages.repeated
    last = table.iteration == iterations - 1
    if int(np.sum(last)) >= len(job.gpus):
        return float(np.max(table.end[last])) - job.start_s, "measured"
    if times is None:
        return None, "projected"
    waited = max(0.0, float(np.min(table.start)) - job.start_s)
    return waited + outages.lost_s + iterations * _mean_without(table, outages, times.mean), "projected"


def _mean_without(table: _Columns, outages: JobOutages, mean: float) -> float:
    """Mean seconds of iterations that no outage stopped; ``mean``, of all, if there are none."""
    good = ~table.disturbed & (table.fraction > 0.0)
    for begin, end in outages.spans:
        good &= (table.end <= begin) | (table.start >= end)
    if not outages.spans or not good.any():
        return mean
    return float(np.mean((table.end - table.start)[good]))
