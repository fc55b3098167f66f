"""The compiled loop over events behind :mod:`testbed.flow.steady`: jobs compute, send, wait and begin anew.

Arrays are by job; what happens to one touches only those that it shares links or GPUs with.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from testbed.flow.compiled import compiled
from testbed.flow.maxmin import Flags, Floats, Integers
from testbed.flow.periodic import SLACK_S

TOLERANCE: Final = 1e-3
"""A stretch twice as long must move the busy GPUs by less than this share of all."""
_FULL: Final = 1e-12

Turns = tuple[Integers, Flags, Floats, Integers]
"""What :func:`turns_at_start` returns."""


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
def expect(who: Flags, now: float, left: Floats, waits: Flags, speed: Floats, due: Floats) -> None:
    """Write into ``due`` [jobs] when the next part (compute, lead, communication) of each of ``who`` ends, if any."""
    for job in range(len(who)):
        if who[job]:
            step = np.inf
            if left[0, job] > 0.0 and not waits[job]:
                step = left[0, job]
            if left[1, job] > 0.0 and not waits[job]:
                step = min(step, left[1, job])
            if speed[job] > 0.0:
                step = min(step, left[2, job] / speed[job])
            due[job] = now + step


@compiled
def bring_to(
    now: float, who: Flags, left: Floats, times: Floats, speed: Floats, turns: Turns, since: Floats, sums: Floats
) -> None:
    """Let time pass for ``who`` from ``since`` [jobs] to ``now``, at most their next event; what has ended begins anew.

    ``sums`` [2, jobs]: iterations of compute done, and the integral of time over them. Whoever has computed gives
    shared GPUs back, and asks for them again for the next iteration.
    """
    pack, waits, asked, holder = turns
    for job in range(len(who)):
        if who[job]:
            step = now - since[job]
            if left[0, job] > 0.0 and not waits[job]:
                part = step / times[job, 0]
                sums[0, job] += part
                sums[1, job] += part * (since[job] + 0.5 * step)
                for row in range(2):
                    left[row, job] -= step
                    if left[row, job] <= SLACK_S:
                        left[row, job] = 0.0
                if pack[job] >= 0 and left[0, job] <= 0.0:
                    holder[pack[job]] = -1
            if speed[job] > 0.0:
                left[2, job] -= step * speed[job]
                if left[2, job] <= SLACK_S:
                    left[2, job] = 0.0
            if left[0, job] <= 0.0 and left[2, job] <= 0.0:
                for row in range(3):
                    left[row, job] = times[job, row]
                if pack[job] >= 0:
                    waits[job] = True
                    asked[job] = now
            since[job] = now


@compiled
def grant(now: float, turns: Turns, since: Floats, ready: Flags) -> None:
    """Let GPUs on which nobody computes serve whoever asked first, and count those as ``ready``."""
    pack, waits, asked, holder = turns
    for place in range(len(holder)):
        if holder[place] < 0:
            first = -1
            for job in range(len(pack)):
                if pack[job] == place and waits[job] and (first < 0 or asked[job] < asked[first]):
                    first = job
            if first >= 0:
                holder[place] = first
                waits[first] = False
                since[first] = now
                ready[first] = True


@compiled
def turns_at_start(left: Floats, times: Floats, pack: Integers) -> Turns:
    """Return by job its pack, whether it waits for its GPUs and since when; by pack who has them: nobody yet.

    Whoever is furthest into its iteration asked first.
    """
    jobs = len(pack)
    waits, asked = np.zeros(jobs, np.bool_), np.zeros(jobs)
    for job in range(jobs):
        if pack[job] >= 0 and left[0, job] > 0.0:
            waits[job] = True
            asked[job] = left[0, job] / times[job, 0] - 1.0
    return pack, waits, asked, np.full(pack.max() + 1, -1)


@compiled
def wish(who: Flags, left: Floats, waits: Flags, sending: Flags, last: Flags, speed: Floats) -> bool:
    """Write into ``sending`` whether each of ``who`` wants its links, and stop those that do not; return any change."""
    changed = False
    for job in range(len(who)):
        if who[job]:
            sending[job] = left[1, job] <= 0.0 < left[2, job] and not waits[job]
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
    pack: Integers,
    first_s: float,
    limit_s: float,
    doublings: int,
    rates: Floats,
) -> float:
    """Write iterations per second into ``rates`` [jobs]; return the seconds computed.

    ``left`` [3, jobs]: what is left of each iteration, at the beginning and, afterwards, at the end. ``times``
    [jobs, 4]: compute (with pause), lead (with pause), communication, offset. ``pack`` [jobs]: which jobs share GPUs.
    """
    jobs = len(levels)
    near, order = neighbours(starts, links, count), np.argsort(levels)
    speed, free, wanted = np.zeros(jobs), np.ones(count), np.zeros(count)
    sending, last, anew = np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_)
    sums, half = np.zeros((2, jobs)), np.zeros((2, jobs))
    ready, everybody = np.zeros(jobs, np.bool_), np.ones(jobs, np.bool_)
    since, due = np.zeros(jobs), np.zeros(jobs)  # each job is only looked at when something happens to it
    turns = turns_at_start(left, times, pack)
    waits = turns[1]
    now, end, before = 0.0, min(first_s, limit_s), -1.0
    while True:
        while now < end - SLACK_S:
            for job in range(jobs):
                ready[job] = due[job] <= now + SLACK_S
            bring_to(now, ready, left, times, speed, turns, since, sums)
            grant(now, turns, since, ready)
            changed = wish(ready, left, waits, sending, last, speed)
            expect(ready, now, left, waits, speed, due)
            if changed:
                touched(sending, last, near, anew)
                bring_to(now, anew, left, times, speed, turns, since, sums)
                speeds(anew, starts, links, shares, free, wanted, levels, order, speed)
                expect(anew, now, left, waits, speed, due)
                last[:] = sending
            now = min(end, due.min())
        bring_to(now, everybody, left, times, speed, turns, since, sums)
        if end == first_s or end >= limit_s:
            rates[:] = sums[0] / now
        else:
            weighted(sums, half, now, rates)
        busy = (weights * rates * times[:, 0]).sum()
        stands_still = abs(busy - before) < TOLERANCE * weights.sum()
        if doublings == 0 or stands_still or end >= limit_s:
            return now
        half[:] = sums
        before, end, doublings = busy, min(2.0 * end, limit_s), doublings - 1
