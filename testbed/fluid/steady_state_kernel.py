"""The compiled loop over events behind :mod:`testbed.fluid.steady_state`: jobs compute, send, wait and begin again.

Arrays are by job; what happens to one touches only those that it shares links or GPUs with.
"""

from __future__ import annotations

import numpy as np

from testbed.fluid.compiled import compiled
from testbed.fluid.level_speeds import FULL, Users, of_highest_level, pass_on, speeds, that_began_or_ended
from testbed.fluid.maxmin import Flags, Floats, Integers
from workloads.periodic_job import SLACK_S

Turns = tuple[Integers, Flags, Floats, Integers]
"""What :func:`turns_at_start` returns."""
Group = tuple[Integers, Integers, Floats, tuple[Integers, Integers], Users, Integers]
"""Links of each job in rows: starts, links and shares; which jobs are near which; users of each link; levels."""


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
def expect(who: Integers, now: float, left: Floats, waits: Flags, speed: Floats, due: Floats) -> None:
    """Write into ``due`` [jobs] when the next part (compute, lead, communication) of each of ``who`` ends, if any."""
    for job in who:
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
    now: float, who: Integers, left: Floats, times: Floats, speed: Floats, turns: Turns, since: Floats, sums: Floats
) -> None:
    """Let time pass for ``who`` from ``since`` [jobs] to ``now``, at most their next event; what has ended restarts.

    ``sums`` [2, jobs]: iterations of compute done, and the integral of time over them. A job that has computed
    releases shared GPUs, and asks for them again for the next iteration.
    """
    pack, waits, asked, holder = turns
    for job in who:
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
def grant(now: float, turns: Turns, since: Floats, ready: Integers, count: int) -> int:
    """Give idle GPUs to the job that asked first, and add those jobs to the ``count`` that are ready."""
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
                if not (ready[:count] == first).any():
                    ready[count] = first
                    count += 1
    return count


@compiled
def turns_at_start(left: Floats, times: Floats, pack: Integers) -> Turns:
    """Return by job its pack, whether it waits for its GPUs and since when; by pack which job has them: none yet.

    The job furthest into its iteration asked first.
    """
    jobs = len(pack)
    waits, asked = np.zeros(jobs, np.bool_), np.zeros(jobs)
    for job in range(jobs):
        if pack[job] >= 0 and left[0, job] > 0.0:
            waits[job] = True
            asked[job] = left[0, job] / times[job, 0] - 1.0
    return pack, waits, asked, np.full(pack.max() + 1, -1)


@compiled
def wish(who: Integers, left: Floats, waits: Flags, sending: Flags, last: Flags, speed: Floats) -> bool:
    """Write into ``sending`` whether each of ``who`` wants its links, and stop those that do not; return any change."""
    changed = False
    for job in who:
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
def pass_until(
    now: float,
    stop: float,
    group: Group,
    left: Floats,
    times: Floats,
    turns: Turns,
    by_job: Floats,
    sums: Floats,
    flags: Flags,
    numbers: Integers,
    by_link: Floats,
) -> float:
    """Let time pass from event to event, from ``now`` to ``stop``, and return that; arrays as in :func:`run`."""
    speed, since, due, fresh = by_job[0], by_job[1], by_job[2], by_job[3]
    sending, last, inside = flags[0], flags[1], flags[2]
    everybody, ready, waiting, anew, room = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    free, wanted = by_link[0], by_link[1]
    waits = turns[1]
    starts, links, shares, near, users, levels = group
    while now < stop - SLACK_S:
        some = those_due(due, now, ready)
        bring_to(now, ready[:some], left, times, speed, turns, since, sums)
        some = grant(now, turns, since, ready, some)
        changed = wish(ready[:some], left, waits, sending, last, speed)
        expect(ready[:some], now, left, waits, speed, due)
        count = that_began_or_ended(ready[:some], sending, last, near, levels, inside, waiting) if changed else 0
        while count > 0:  # from level to level, and only beside those whose speed has changed
            found, count = of_highest_level(waiting, count, near, sending, levels, inside, anew)
            who = anew[:found]
            speeds(who, speed, starts, links, shares, users, free, wanted, levels, room, fresh)
            for place in range(found):
                job = who[place]
                inside[job] = False
                if abs(fresh[job] - speed[job]) > FULL:
                    bring_to(now, who[place : place + 1], left, times, speed, turns, since, sums)
                    speed[job] = fresh[job]
                    expect(who[place : place + 1], now, left, waits, speed, due)
                    count = pass_on(job, levels[job] + 1, near, sending, levels, inside, waiting, count)
        now = min(stop, due.min())
    bring_to(now, everybody, left, times, speed, turns, since, sums)
    return now


@compiled
def has_settled(clock: Floats, times: Floats, weights: Floats, sums: Floats, half: Floats, rates: Floats) -> bool:
    """Write the averages over all the time into ``rates``; return whether they hold, else double the stretch."""
    if clock[2] < 0.0:
        rates[:] = sums[0] / clock[0]
    else:
        weighted(sums, half, clock[0], rates)
    # Summed in the order of the jobs: compiled and not compiled, the numbers are the same.
    busy = np.cumsum(weights * rates * times[:, 0])[-1]
    if clock[3] == 0.0 or abs(busy - clock[2]) < clock[4] * np.cumsum(weights)[-1]:
        return True
    half[:] = sums
    clock[1], clock[2], clock[3] = 2.0 * clock[1], busy, clock[3] - 1.0
    return False


@compiled
def run(
    target_s: float,
    clock: Floats,
    group: Group,
    left: Floats,
    times: Floats,
    weights: Floats,
    turns: Turns,
    by_job: Floats,
    sums: Floats,
    half: Floats,
    flags: Flags,
    numbers: Integers,
    by_link: Floats,
    rates: Floats,
) -> bool:
    """Let time pass until the rates have settled, or to ``target_s``; return whether they have settled.

    ``clock``: now, the end of the present stretch, the busy GPUs in the one before, the doublings left, and the share
    of all GPUs by less than which twice the stretch must move the busy ones. ``rates`` [jobs] receives iterations per
    second: in the long run if they have settled, since the last call otherwise.
    ``left`` [3, jobs]: what is left of each iteration. ``times`` [jobs, 4]: compute (with pause), lead (with pause),
    communication, offset. The others are kept from call to call, or are room: ``by_job`` [4, jobs] has speeds,
    since when each job has been as it is, when something happens to it next, and room for new speeds; ``flags``
    [3, jobs] who sends, who sent and room; ``numbers`` [5, jobs] all jobs and room; ``by_link`` [2, links] room.
    """
    begin, done = clock[0], sums[0].copy()
    while True:
        stop = min(clock[1], target_s)
        clock[0] = pass_until(clock[0], stop, group, left, times, turns, by_job, sums, flags, numbers, by_link)
        if stop >= target_s:
            if clock[0] > begin:
                rates[:] = (sums[0] - done) / (clock[0] - begin)
            return False
        if has_settled(clock, times, weights, sums, half, rates):
            return True
