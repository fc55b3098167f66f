"""The compiled loop over events behind :mod:`testbed.fluid.steady_state`: jobs compute, send, wait and begin again.

Arrays are by job; what happens to one touches only those that it may slow, or shares GPUs with.
Sums are in the order of the jobs: compiled and not compiled, the numbers are the same.
"""

from __future__ import annotations

import numpy as np

from testbed.fluid.compiled import compiled
from testbed.fluid.gpu_turns import Turns, grant, turns_at_start
from testbed.fluid.level_speeds import speeds, that_change, those_below, who_feel, with_their_level
from testbed.fluid.maxmin import Flags, Floats, Integers
from testbed.fluid.shared_links import that_can_be_full, users_of, whom_they_slow
from workloads.periodic_job import SLACK_S


@compiled
def those_due(due: Floats, now: float, out: Integers) -> int:
    """Write into ``out`` the jobs to which something happens now; return how many."""
    count = 0
    for job in range(len(due)):
        if due[job] <= now + SLACK_S:
            out[count] = job
            count += 1
    return count


@compiled
def expect(who: Integers, some: int, now: float, left: Floats, waits: Flags, speed: Floats, due: Floats) -> None:
    """Write into ``due`` [jobs] when the next part (compute, lead, communication) of each of ``who`` ends, if any."""
    for place in range(some):
        job = who[place]
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
    now: float,
    who: Integers,
    some: int,
    left: Floats,
    times: Floats,
    speed: Floats,
    turns: Turns,
    since: Floats,
    sums: Floats,
) -> None:
    """Let time pass for ``who`` from ``since`` [jobs] to ``now``, at most their next event; what has ended restarts.

    ``sums`` [2, jobs]: iterations of compute done, and the integral of time over them. A job that has computed
    releases shared GPUs, and asks for them again for the next iteration.
    """
    pack, waits, asked, holder = turns
    for place in range(some):
        job = who[place]
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
def bring_due(
    due: Floats,
    now: float,
    out: Integers,
    left: Floats,
    times: Floats,
    speed: Floats,
    turns: Turns,
    since: Floats,
    sums: Floats,
) -> int:
    """Bring those to which something happens to ``now``; write them, and who gets shared GPUs, into ``out``; count."""
    some = those_due(due, now, out)
    bring_to(now, out, some, left, times, speed, turns, since, sums)
    return grant(now, turns, since, out, some)


@compiled
def wish(who: Integers, some: int, left: Floats, waits: Flags, sending: Flags, last: Flags, speed: Floats) -> bool:
    """Write into ``sending`` whether each of ``who`` wants its links, and stop those that do not; return any change."""
    changed = False
    for place in range(some):
        job = who[place]
        sending[job] = left[1, job] <= 0.0 < left[2, job] and not waits[job]
        if not sending[job]:
            speed[job] = 0.0
        changed = changed or sending[job] != last[job]
    return changed


@compiled
def first_done(quotas: Floats, left: Floats, times: Floats, waits: Flags, since: Floats, sums: Floats) -> float:
    """Return when the first job will have computed its quota of iterations, [jobs], if nothing else happens before."""
    first = np.inf
    for job in range(len(quotas)):
        if left[0, job] > 0.0 and not waits[job] and quotas[job] < np.inf:
            first = min(first, since[job] + max(0.0, quotas[job] - sums[0, job]) * times[job, 0])
    return max(first, SLACK_S)


@compiled
def earliest(due: Floats, end: float) -> float:
    """Return the first time in ``due``, at most ``end``."""
    for time_s in due:
        end = min(end, time_s)
    return end


@compiled
def adopt(who: Integers, some: int, fresh: Floats, speed: Floats) -> None:
    """Let the speeds of ``who`` be the ``fresh`` ones."""
    for place in range(some):
        job = who[place]
        speed[job] = fresh[job]


@compiled
def averages(sums: Floats, half: Floats, now: float, plain: bool, rates: Floats) -> None:
    """Write into ``rates`` averages over 0 .. ``now``; unless ``plain``, weights rise to the middle and then fall."""
    for job in range(len(rates)):
        if plain:
            rates[job] = sums[0, job] / now
        else:
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
    tolerance: float,  # a stretch twice as long must move the busy GPUs by less than this share of all
    quotas: Floats,
    rates: Floats,
) -> float:
    """Write iterations per second into ``rates`` [jobs]; return the seconds computed.

    ``left`` [3, jobs]: what is left of each iteration, at the beginning and, afterwards, at the end. ``times``
    [jobs, 4]: compute (with pause), lead (with pause), communication, offset. ``pack`` [jobs]: which jobs share GPUs.
    ``quotas`` [jobs], none if empty: it ends when the first job has computed so many iterations.
    """
    jobs = len(levels)
    users = users_of(starts, links, shares, count)
    starts, links, shares = that_can_be_full(starts, links, shares, users, levels)
    slows = whom_they_slow(starts, links, users, levels)
    speed, fresh, free, wanted = np.zeros(jobs), np.zeros(jobs), np.ones(count), np.zeros(count)
    sending, last, inside = np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_)
    sums, half, since, due = np.zeros((2, jobs)), np.zeros((2, jobs)), np.zeros(jobs), np.zeros(jobs)
    everybody, ready, anew, room = np.arange(jobs), np.arange(jobs), np.arange(jobs), np.arange(jobs)
    turns = turns_at_start(left, times, pack)
    waits, now, end, before = turns[1], 0.0, min(first_s, limit_s), -1.0
    while True:
        while now < end - SLACK_S:
            some = bring_due(due, now, ready, left, times, speed, turns, since, sums)
            changed = wish(ready, some, left, waits, sending, last, speed)
            expect(ready, some, now, left, waits, speed, due)
            if changed:
                count, first = who_feel(ready, some, sending, last, slows, levels, inside, anew), 0
                while first < count:
                    behind, count = with_their_level(anew, first, count, sending, slows, levels, inside)
                    speeds(anew, first, behind, speed, starts, links, shares, users, free, wanted, levels, room, fresh)
                    some = that_change(anew, first, behind, inside, speed, fresh, room)
                    bring_to(now, room, some, left, times, speed, turns, since, sums)
                    adopt(room, some, fresh, speed)
                    expect(room, some, now, left, waits, speed, due)
                    count, first = those_below(room, some, anew, count, sending, slows, levels, inside), behind
            now = earliest(due, end)
            done = first_done(quotas, left, times, waits, since, sums)
            if done <= now:
                now = first_s = end = done
        bring_to(now, everybody, jobs, left, times, speed, turns, since, sums)
        averages(sums, half, now, end == first_s or end >= limit_s, rates)
        busy = np.cumsum(weights * rates * times[:, 0])[-1]
        stands_still = abs(busy - before) < tolerance * np.cumsum(weights)[-1]
        if doublings == 0 or stands_still or end >= limit_s:
            return now
        half[:] = sums
        before, end, doublings = busy, min(2.0 * end, limit_s), doublings - 1
