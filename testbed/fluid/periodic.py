"""Periodic jobs as fluids under strict priority: which jobs compute, send and wait.

Each job repeats: compute, communication that may start once a lead of that compute is done, and the
next iteration when both are done. Its communication loads links in fixed proportion, all at once.
Levels are served strictly; inside one, jobs share max-min fairly (:mod:`testbed.fluid.rates`). What
changes at an event is computed exactly, so there is no time step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from testbed.fluid.compiled import compiled
from testbed.fluid.rates import Floats, Integers, speeds
from workloads.periodic_job import SLACK_S, PeriodicJob

LinkT = TypeVar("LinkT")

FIRST_PERIODS = 8
"""Iterations of the slowest job, alone, in the first horizon that is tried."""
MOST_DOUBLINGS = 9
TOLERANCE = 1e-3
"""Doubling the horizon, twice in a row, must change GPU utilisation by less than this share of it."""
MOST_JOBS = 62

_TABLE_JOBS = 10


@dataclass(frozen=True)
class PeriodicOutcome:
    """What happened in ``horizon_s`` seconds, job by job in the order given.

    ``busy_s``: seconds in which a job's GPUs compute. ``sent_s``: seconds of its own communication
    done, 1 per second at full speed. ``iterations`` are those completed. ``busy_gpus``: GPUs that
    compute, averaged over time. In a horizon that was chosen here the average weighs the middle most,
    in a triangle, so that iterations cut at its two ends do not matter: it comes to the long-run
    utilisation with the square of the horizon, where a plain average does with its length.
    """

    horizon_s: float
    busy_s: tuple[float, ...]
    sent_s: tuple[float, ...]
    iterations: tuple[int, ...]
    gpus: tuple[float, ...]
    busy_gpus: float

    @property
    def utilization(self) -> float:
        """Compute-busy time of the GPUs over all their time, averaged like ``busy_gpus``."""
        return self.busy_gpus / sum(self.gpus)


def simulate(
    jobs: Sequence[PeriodicJob[LinkT]], levels: Sequence[int], horizon_s: float | None = None
) -> PeriodicOutcome:
    """Return what ``jobs`` do at ``levels`` (one each, smallest served first) from time 0 on.

    Without ``horizon_s`` the horizon is :data:`FIRST_PERIODS` of the longest iteration, doubled until
    that has twice in a row changed utilisation by less than :data:`TOLERANCE` of it (at most
    :data:`MOST_DOUBLINGS` times); the last horizon counts. ``ValueError`` for no jobs, too many, or not a
    level for each.
    """
    if not 0 < len(jobs) <= MOST_JOBS or len(levels) != len(jobs):
        raise ValueError(f"a simulation needs 1 to {MOST_JOBS} jobs and a level for each")
    if any(job.period_s <= SLACK_S for job in jobs):
        raise ValueError(f"a simulation needs iterations longer than {SLACK_S:g} s")
    if horizon_s is not None and horizon_s <= 0:
        raise ValueError(f"a horizon must be longer than 0 s, not {horizon_s:g} s")
    shape = JobArrays.of(jobs)
    first = FIRST_PERIODS * max(job.period_s for job in jobs) if horizon_s is None else horizon_s
    totals = np.zeros((3, len(jobs)))
    doublings = MOST_DOUBLINGS if horizon_s is None else 0
    level = np.array(levels, np.int64)
    reached, busy_gpus = run(shape.times, shape.shares, shape.gpus, level, first, doublings, totals)
    busy, sent, iterations = totals.tolist()
    gpus = tuple(float(job.gpus) for job in jobs)
    return PeriodicOutcome(
        float(reached), tuple(busy), tuple(sent), tuple(int(count) for count in iterations), gpus, float(busy_gpus)
    )


@dataclass(frozen=True)
class JobArrays:
    """Jobs as arrays: ``times`` [jobs, 4] (compute, lead, communication, offset), ``shares`` [jobs, links], ``gpus``.

    Links that only one job uses are left out: alone it cannot be slower than its own worst link.
    """

    times: Floats
    shares: Floats
    gpus: Floats

    @classmethod
    def of(cls, jobs: Sequence[PeriodicJob[LinkT]]) -> JobArrays:
        """Return the arrays of ``jobs``."""
        users: dict[LinkT, int] = {}
        for job in jobs:
            for link, load in job.loads.items():
                users[link] = users.get(link, 0) + (load > 0)
        shared = [link for link, count in users.items() if count > 1]
        shares = [[job.loads.get(link, 0.0) / (job.communication_s or 1.0) for link in shared] for job in jobs]
        times = [[job.compute_s, job.lead_s, job.communication_s, job.offset_s] for job in jobs]
        return cls(
            np.array(times), np.array(shares).reshape(len(jobs), len(shared)), np.array([job.gpus for job in jobs])
        )


@compiled
def state_at_start(times: Floats) -> Floats:
    """Return what is left [3, jobs] of compute, of the lead in it and of communication, in seconds."""
    jobs = times.shape[0]
    left = np.empty((3, jobs))
    for job in range(jobs):
        compute_s, lead_s, communication_s, offset_s = times[job]
        left[0, job] = max(0.0, compute_s - offset_s)
        left[1, job] = max(0.0, lead_s - offset_s)
        left[2, job] = communication_s - max(0.0, offset_s - lead_s)
    return left


@compiled
def who_sends(left: Floats) -> int:
    """Return the jobs that are ready to send, as bits."""
    sending = 0
    for job in range(left.shape[1]):
        if left[1, job] <= 0.0 < left[2, job]:
            sending |= 1 << job
    return sending


@compiled
def next_event(left: Floats, speed: Floats) -> float:
    """Return the seconds until a compute, a lead or a communication ends; infinite if none is under way."""
    step = np.inf
    for job in range(left.shape[1]):
        if left[0, job] > 0.0:
            step = min(step, left[0, job])
        if left[1, job] > 0.0:
            step = min(step, left[1, job])
        if speed[job] > 0.0:
            step = min(step, left[2, job] / speed[job])
    return step


@compiled
def advance(left: Floats, times: Floats, gpus: Floats, speed: Floats, step: float, totals: Floats) -> float:
    """Let ``step`` seconds pass, start new iterations, add to ``totals``; return the GPU seconds computed."""
    computed = 0.0
    for job in range(left.shape[1]):
        if left[0, job] > 0.0:
            totals[0, job] += step
            computed += step * gpus[job]
            for part in range(2):
                left[part, job] -= step
                if left[part, job] <= SLACK_S:
                    left[part, job] = 0.0
        if speed[job] > 0.0:
            totals[1, job] += step * speed[job]
            left[2, job] -= step * speed[job]
            if left[2, job] <= SLACK_S:
                left[2, job] = 0.0
        if left[0, job] <= 0.0 and left[2, job] <= 0.0:
            totals[2, job] += 1.0
            for part in range(3):
                left[part, job] = times[job, part]
    return computed


@compiled
def run(
    times: Floats, shares: Floats, gpus: Floats, levels: Integers, first_s: float, doublings: int, totals: Floats
) -> tuple[float, float]:
    """Add busy time, sent time and iterations to ``totals`` [3, jobs]; return the horizon in seconds and busy GPUs.

    ``first_s`` is run, then as much again up to ``doublings`` times while utilisation still moves.
    """
    jobs = times.shape[0]
    left = state_at_start(times)
    slots = 1 << min(jobs, _TABLE_JOBS)
    speed = np.zeros((slots, jobs))  # by set of jobs that send: it recurs all the time
    known = np.zeros(slots, np.bool_)
    last = -1
    end, now, before, still = first_s, 0.0, 0.0, 0
    busy, moment, half_busy, half_moment = 0.0, 0.0, 0.0, 0.0  # integrals of busy GPUs and of time x busy GPUs
    while True:
        while now < end - SLACK_S:
            sending = who_sends(left)
            slot = sending if jobs <= _TABLE_JOBS else 0
            if not known[slot] or (jobs > _TABLE_JOBS and sending != last):
                speeds(sending, shares, levels, speed[slot])
                known[slot], last = True, sending
            step = min(end - now, next_event(left, speed[slot]))
            computed = advance(left, times, gpus, speed[slot], step, totals)
            busy += computed
            moment += computed * (now + 0.5 * step)
            now += step
        value = busy / now
        if end > first_s:  # rising weight in the first half, which was the horizon before, falling in the second
            value = 4.0 * (half_moment + now * (busy - half_busy) - (moment - half_moment)) / now**2
        still = still + 1 if abs(value - before) < TOLERANCE * before else 0
        if doublings == 0 or still == 2:
            return now, value
        half_busy, half_moment = busy, moment
        before, end, doublings = value, 2.0 * end, doublings - 1
