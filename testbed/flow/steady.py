"""What jobs that share links settle down to: iterations per second in the long run, without stepping through weeks.

The jobs are the fluids of :mod:`testbed.flow.periodic`. As long as nobody comes or goes they repeat, in
the long run, the same pattern; so a stretch of it is computed, doubled until its average stands
still, and the average holds for the rest. Averages weigh the middle of the stretch most (a triangle),
so that iterations cut at its ends do not matter. Compiled; any number of jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from testbed.flow.compiled import compiled
from testbed.flow.maxmin import Flags, Floats, Integers
from testbed.flow.periodic import SLACK_S, state_at_start

FIRST_PERIODS: Final = 16
"""Iterations of the slowest job, alone, in the first stretch."""
MOST_DOUBLINGS: Final = 6
TOLERANCE: Final = 1e-3
"""A stretch twice as long must move the busy GPUs by less than this share of all."""
_FULL: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Fluid:
    """A job on its links. Seconds per iteration: ``compute_s``, ``lead_s`` of it before communication may start.

    ``loads``: link -> seconds that the link needs for an iteration's bytes. ``level``: 0 is served first.
    ``pause_s``: what the job waits before each iteration to keep a time shift. ``offset_s``: how far into an
    iteration, alone, the job stands at time 0. ``weight``: its GPUs.
    """

    compute_s: float
    lead_s: float
    loads: Mapping[int, float]
    level: int
    weight: float
    pause_s: float = 0.0
    offset_s: float = 0.0

    @property
    def communication_s(self) -> float:
        """Seconds of communication alone: those of the most loaded link."""
        return max(self.loads.values(), default=0.0)

    @property
    def period_s(self) -> float:
        """Seconds of an iteration alone."""
        return self.pause_s + max(self.compute_s, self.lead_s + self.communication_s)


State = tuple[float, float, float]
"""What is left of an iteration: seconds of compute, seconds of the lead in it, and the share of communication."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Iterations per second of each job, the seconds that were computed to know it, and where the jobs stand then.

    ``lasting``: these are long-run rates, not averages over just ``horizon_s``.
    """

    rates: tuple[float, ...]
    horizon_s: float
    states: tuple[State, ...]
    lasting: bool


def settle(
    jobs: Sequence[Fluid],
    horizon_s: float | None = None,
    states: Sequence[State | None] = (),
    limit_s: float = inf,
) -> Settled:
    """Return the long-run rates of ``jobs``; with ``horizon_s`` the plain averages over just that time from 0 on.

    ``states`` say where the jobs stand at 0; None, or no states, for one that stands where its ``offset_s`` says.
    No more than ``limit_s`` seconds are computed: rates that have not settled by then are averages over those.
    """
    times = np.array([[j.compute_s + j.pause_s, j.lead_s + j.pause_s, j.communication_s, j.offset_s] for j in jobs])
    starts, links, shares, count = _shared_links(jobs)
    levels = np.array([job.level for job in jobs], np.int64)
    weights = np.array([job.weight for job in jobs], float)
    first = FIRST_PERIODS * max(job.period_s for job in jobs) if horizon_s is None else horizon_s
    doublings = 0 if horizon_s is not None else MOST_DOUBLINGS
    rates = np.zeros(len(jobs))
    left = state_at_start(times)
    for number, state in enumerate(states):
        if state is not None:
            left[:, number] = np.minimum(np.array(state) * (1.0, 1.0, times[number, 2]), times[number, :3])
    if limit_s <= 0.0:
        raise ValueError(f"rates need a time above 0 s to settle in, not {limit_s:g} s")
    reached = run(left, times, starts, links, shares, count, levels, weights, first, limit_s, doublings, rates)
    lasting = horizon_s is None and reached < limit_s - SLACK_S
    left[2] = np.divide(left[2], times[:, 2], out=np.zeros(len(jobs)), where=times[:, 2] > 0)
    return Settled(tuple(rates.tolist()), reached, tuple(zip(*left.tolist(), strict=True)), lasting)


def _shared_links(jobs: Sequence[Fluid]) -> tuple[Integers, Integers, Floats, int]:
    """Links that several jobs use, in rows by job: starts [jobs + 1], link numbers, shares at full speed; their count.

    Of links with the same users only those matter that are not less loaded by everyone than another.
    """
    users: dict[int, list[int]] = {}
    for number, job in enumerate(jobs):
        for link, load in job.loads.items():
            if load > 0:
                users.setdefault(link, []).append(number)
    groups: dict[tuple[int, ...], set[tuple[float, ...]]] = {}
    for link, who in users.items():
        if len(who) > 1:
            shares = tuple(jobs[number].loads[link] / jobs[number].communication_s for number in who)
            groups.setdefault(tuple(who), set()).add(shares)
    rows: list[list[tuple[int, float]]] = [[] for _ in jobs]
    count = 0
    for members, kinds in groups.items():
        for shares in _largest(kinds):
            for number, share in zip(members, shares, strict=True):
                rows[number].append((count, share))
            count += 1
    starts = np.cumsum([0, *(len(row) for row in rows)])
    flat = [pair for row in rows for pair in row]
    return starts, np.array([link for link, _ in flat], np.int64), np.array([share for _, share in flat]), count


def _largest(kinds: set[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Those that no other one is at least as large as, everywhere."""
    ordered = sorted(kinds, reverse=True)
    kept: list[tuple[float, ...]] = []
    for shares in ordered:
        if not any(all(mine <= its for mine, its in zip(shares, other, strict=True)) for other in kept):
            kept.append(shares)
    return kept


@compiled
def neighbours(starts: Integers, links: Integers, count: int) -> Flags:
    """Return [jobs, jobs] who shares a link with whom."""
    jobs = len(starts) - 1
    uses = np.zeros((count, jobs), np.bool_)
    for job in range(jobs):
        for place in range(starts[job], starts[job + 1]):
            uses[links[place], job] = True
    near = np.zeros((jobs, jobs), np.bool_)
    for job in range(jobs):
        for place in range(starts[job], starts[job + 1]):
            near[job] |= uses[links[place]]
    return near


@compiled
def touched(sending: Flags, before: Flags, near: Flags, out: Flags) -> None:
    """Write into ``out`` who sends and is reached, over links of jobs that send, from one that began or ended."""
    jobs = len(sending)
    waiting = np.empty(jobs, np.int64)
    count = 0
    out[:] = False
    for job in range(jobs):
        if sending[job] != before[job]:
            out[job] = True
            waiting[count] = job
            count += 1
    while count > 0:
        count -= 1
        from_job = waiting[count]
        for job in range(jobs):
            if near[from_job, job] and sending[job] and not out[job]:
                out[job] = True
                waiting[count] = job
                count += 1
    out &= sending


@compiled
def speeds(
    sending: Flags, starts: Integers, links: Integers, shares: Floats, free: Floats, wanted: Floats, levels: Integers,
    order: Integers, out: Floats,
) -> None:  # fmt: skip
    """Write the speeds, 0 to 1, of the jobs ``sending`` into their places of ``out``.

    Strict between levels, max-min fair inside one. Nobody else may send on their links. ``order``: the jobs by
    level. ``free`` and ``wanted`` [links] are room to compute in; ``wanted`` holds zeros, before and after.
    """
    for job in range(len(sending)):
        if sending[job]:
            free[links[starts[job] : starts[job + 1]]] = 1.0
    growing = np.empty(len(sending), np.int64)
    first = 0
    while first < len(order):
        level, left = levels[order[first]], 0
        while first < len(order) and levels[order[first]] == level:
            if sending[order[first]]:
                growing[left] = order[first]
                left += 1
            first += 1
        reached = 0.0
        while left > 0:
            reached += rise_together(growing[:left], starts, links, shares, free, wanted, 1.0 - reached)
            still = 0
            for job in growing[:left]:
                stops = reached >= 1.0 - _FULL
                for link in links[starts[job] : starts[job + 1]]:
                    stops = stops or free[link] <= _FULL
                if stops:
                    out[job] = reached
                else:
                    growing[still] = job
                    still += 1
            left = still


@compiled
def rise_together(
    growing: Integers, starts: Integers, links: Integers, shares: Floats, free: Floats, wanted: Floats, most: float
) -> float:
    """Return by how much, ``most`` at most, the speeds of all jobs ``growing`` can rise until a link is full.

    ``free`` falls accordingly.
    """
    rise = most
    for job in growing:
        for place in range(starts[job], starts[job + 1]):
            wanted[links[place]] += shares[place]
    for job in growing:
        for link in links[starts[job] : starts[job + 1]]:
            if wanted[link] > 0.0:
                rise = min(rise, free[link] / wanted[link])
    rise = max(rise, 0.0)
    for job in growing:
        for link in links[starts[job] : starts[job + 1]]:
            free[link] -= rise * wanted[link]
            wanted[link] = 0.0
    return rise


@compiled
def expect(who: Flags, now: float, left: Floats, speed: Floats, due: Floats) -> None:
    """Write into ``due`` [jobs] when the next part (compute, lead, communication) of each of ``who`` ends, if any."""
    for job in range(len(who)):
        if who[job]:
            step = np.inf
            if left[0, job] > 0.0:
                step = left[0, job]
            if left[1, job] > 0.0:
                step = min(step, left[1, job])
            if speed[job] > 0.0:
                step = min(step, left[2, job] / speed[job])
            due[job] = now + step


@compiled
def bring_to(now: float, who: Flags, left: Floats, times: Floats, speed: Floats, since: Floats, sums: Floats) -> None:
    """Let time pass for ``who`` from ``since`` [jobs] to ``now``, at most their next event; what has ended begins anew.

    ``sums`` [2, jobs]: iterations of compute done, and the integral of time over them.
    """
    for job in range(len(who)):
        if who[job]:
            step = now - since[job]
            if left[0, job] > 0.0:
                part = step / times[job, 0]
                sums[0, job] += part
                sums[1, job] += part * (since[job] + 0.5 * step)
                for row in range(2):
                    left[row, job] -= step
                    if left[row, job] <= SLACK_S:
                        left[row, job] = 0.0
            if speed[job] > 0.0:
                left[2, job] -= step * speed[job]
                if left[2, job] <= SLACK_S:
                    left[2, job] = 0.0
            if left[0, job] <= 0.0 and left[2, job] <= 0.0:
                for row in range(3):
                    left[row, job] = times[job, row]
            since[job] = now


@compiled
def wish(who: Flags, left: Floats, sending: Flags, last: Flags, speed: Floats) -> bool:
    """Write into ``sending`` whether each of ``who`` wants its links, and stop those that do not; return any change."""
    changed = False
    for job in range(len(who)):
        if who[job]:
            sending[job] = left[1, job] <= 0.0 < left[2, job]
            if not sending[job]:
                speed[job] = 0.0
            changed = changed or sending[job] != last[job]
    return changed


@compiled
def weighted(sums: Floats, half: Floats, now: float, rates: Floats) -> None:
    """Write into ``rates`` the averages over 0 .. ``now``, weights rising to the middle and falling after it."""
    for job in range(len(rates)):
        falling = now * (sums[0, job] - half[0, job]) - (sums[1, job] - half[1, job])
        rates[job] = 4.0 * (half[1, job] + falling) / now**2


@compiled
def run(
    left: Floats,
    times: Floats,
    starts: Integers,
    links: Integers,
    shares: Floats,
    count: int,
    levels: Integers,
    weights: Floats,
    first_s: float,
    limit_s: float,
    doublings: int,
    rates: Floats,
) -> float:
    """Write iterations per second into ``rates`` [jobs]; return the seconds computed.

    ``left`` [3, jobs]: what is left of each iteration, at the beginning and, afterwards, at the end. ``times``
    [jobs, 4]: compute (with pause), lead (with pause), communication, offset.
    """
    jobs = len(levels)
    near, order = neighbours(starts, links, count), np.argsort(levels)
    speed, free, wanted = np.zeros(jobs), np.ones(count), np.zeros(count)
    sending, last, anew = np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_)
    sums, half = np.zeros((2, jobs)), np.zeros((2, jobs))
    ready, everybody = np.zeros(jobs, np.bool_), np.ones(jobs, np.bool_)
    since, due = np.zeros(jobs), np.zeros(jobs)  # each job is only looked at when something happens to it
    now, end, before, still = 0.0, min(first_s, limit_s), -1.0, 0
    while True:
        while now < end - SLACK_S:
            for job in range(jobs):
                ready[job] = due[job] <= now + SLACK_S
            bring_to(now, ready, left, times, speed, since, sums)
            changed = wish(ready, left, sending, last, speed)
            expect(ready, now, left, speed, due)
            if changed:
                touched(sending, last, near, anew)
                bring_to(now, anew, left, times, speed, since, sums)
                speeds(anew, starts, links, shares, free, wanted, levels, order, speed)
                expect(anew, now, left, speed, due)
                last[:] = sending
            now = min(end, due.min())
        bring_to(now, everybody, left, times, speed, since, sums)
        if end == first_s or end >= limit_s:
            rates[:] = sums[0] / now
        else:
            weighted(sums, half, now, rates)
        busy = (weights * rates * times[:, 0]).sum()
        still = still + 1 if abs(busy - before) < TOLERANCE * weights.sum() else 0
        if doublings == 0 or still == 2 or end >= limit_s:
            return now
        half[:] = sums
        before, end, doublings = busy, min(2.0 * end, limit_s), doublings - 1
