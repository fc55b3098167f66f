"""The compiled loop over events behind :mod:`testbed.fluid.steady_state`: jobs compute, send, wait and begin again.

Arrays are by job; what happens to one touches only those that it shares links or GPUs with.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from testbed.fluid.compiled import compiled
from testbed.fluid.maxmin import Flags, Floats, Integers
from workloads.periodic_job import SLACK_S

TOLERANCE: Final = 1e-3
"""A stretch twice as long must move the busy GPUs by less than this share of all."""
_FULL: Final = 1e-12
_UNKNOWN: Final = 2.0
"""More than any link has free."""

Turns = tuple[Integers, Flags, Floats, Integers]
"""What :func:`turns_at_start` returns."""
Users = tuple[Integers, Integers, Floats]
"""What :func:`users_of` returns."""


@compiled
def users_of(starts: Integers, links: Integers, shares: Floats, count: int) -> Users:
    """Return which jobs use which share of a link, in rows by link: starts [count + 1], jobs and shares."""
    rows = np.zeros(count + 1, np.int64)
    for link in links:
        rows[link + 1] += 1
    for link in range(count):
        rows[link + 1] += rows[link]
    at, jobs, parts = rows[:count].copy(), np.zeros(len(links), np.int64), np.zeros(len(links))
    for job in range(len(starts) - 1):
        for place in range(starts[job], starts[job + 1]):
            link = links[place]
            jobs[at[link]], parts[at[link]] = job, shares[place]
            at[link] += 1
    return rows, jobs, parts


@compiled
def neighbours(starts: Integers, links: Integers, users: Users) -> tuple[Integers, Integers]:
    """Return which jobs share a link, in rows by job: starts [jobs + 1] and jobs."""
    jobs = len(starts) - 1
    first, using, _ = users
    near = np.zeros((jobs, jobs), np.bool_)
    for job in range(jobs):
        for link in links[starts[job] : starts[job + 1]]:
            for other in using[first[link] : first[link + 1]]:
                near[job, other] = True
        near[job, job] = False
    rows, others = np.zeros(jobs + 1, np.int64), np.empty(near.sum(), np.int64)
    for job in range(jobs):
        rows[job + 1] = rows[job]
        for other in range(jobs):
            if near[job, other]:
                others[rows[job + 1]] = other
                rows[job + 1] += 1
    return rows, others


@compiled
def pass_on(
    from_job: int,
    least: int,
    near: tuple[Integers, Integers],
    sending: Flags,
    levels: Integers,
    inside: Flags,
    out: Integers,
    count: int,
) -> int:
    """Add to the ``count`` jobs ``out`` those that send at level ``least`` or below beside ``from_job``."""
    rows, others = near
    for job in others[rows[from_job] : rows[from_job + 1]]:
        if sending[job] and not inside[job] and levels[job] >= least:
            inside[job] = True
            out[count] = job
            count += 1
    return count


@compiled
def that_began_or_ended(
    changed: Integers,
    sending: Flags,
    last: Flags,
    near: tuple[Integers, Integers],
    levels: Integers,
    inside: Flags,
    out: Integers,
) -> int:
    """Write into ``out`` who must look for another speed: those of ``changed`` that began to send, and those beside.

    Beside those that began or ended, of their own and of lower levels. Return how many. ``inside`` says who they are;
    all of it is False before. ``last`` is brought up to date.
    """
    count = 0
    for job in changed:
        if sending[job] != last[job]:
            last[job] = sending[job]
            if sending[job] and not inside[job]:
                inside[job] = True
                out[count] = job
                count += 1
            count = pass_on(job, levels[job], near, sending, levels, inside, out, count)
    return count


@compiled
def of_highest_level(
    waiting: Integers,
    count: int,
    near: tuple[Integers, Integers],
    sending: Flags,
    levels: Integers,
    inside: Flags,
    out: Integers,
) -> tuple[int, int]:
    """Move from the ``count`` jobs ``waiting`` those of the highest level into ``out``, with all whom they meet in it.

    Return how many those are and how many still wait.
    """
    level = levels[waiting[0]]
    for job in waiting[:count]:
        level = min(level, levels[job])
    found = left = 0
    for job in waiting[:count]:
        if levels[job] == level:
            out[found] = job
            found += 1
        else:
            waiting[left] = job
            left += 1
    rows, others = near
    done = 0
    while done < found:
        from_job = out[done]
        done += 1
        for job in others[rows[from_job] : rows[from_job + 1]]:
            if sending[job] and not inside[job] and levels[job] == level:
                inside[job] = True
                out[found] = job
                found += 1
    return found, left


@compiled
def speeds(
    who: Integers,
    speed: Floats,
    starts: Integers,
    links: Integers,
    shares: Floats,
    users: Users,
    free: Floats,
    wanted: Floats,
    levels: Integers,
    growing: Integers,
    out: Floats,
) -> None:
    """Write the speeds, 0 to 1, of the jobs ``who``, all of one level that meet there, into their places of ``out``.

    Max-min fair, of what the ``speed`` of higher levels leaves. ``free`` and ``wanted`` [links] and ``growing``
    [jobs] are room to compute in; ``wanted`` holds zeros, before and after.
    """
    rows, others, parts = users
    level = levels[who[0]]
    for job in who:
        for link in links[starts[job] : starts[job + 1]]:
            free[link] = _UNKNOWN
    for job in who:
        for link in links[starts[job] : starts[job + 1]]:
            if free[link] == _UNKNOWN:
                left_over = 1.0
                for place in range(rows[link], rows[link + 1]):
                    if levels[others[place]] < level:
                        left_over -= parts[place] * speed[others[place]]
                free[link] = left_over
    left = len(who)
    if left == 1:
        out[who[0]] = fill(who[0], starts, links, shares, free)
        return
    growing[:left] = who
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
def fill(job: int, starts: Integers, links: Integers, shares: Floats, free: Floats) -> float:
    """Return the speed, 1 at most, at which a job alone at its level fills a link; ``free`` falls accordingly."""
    speed = 1.0
    for place in range(starts[job], starts[job + 1]):
        if shares[place] > 0.0:
            speed = min(speed, free[links[place]] / shares[place])
    speed = max(speed, 0.0)
    for place in range(starts[job], starts[job + 1]):
        free[links[place]] -= speed * shares[place]
    return speed


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
def run(
    target_s: float,
    clock: Floats,
    left: Floats,
    times: Floats,
    starts: Integers,
    links: Integers,
    shares: Floats,
    near: tuple[Integers, Integers],
    users: Users,
    levels: Integers,
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

    ``clock``: now, the end of the present stretch, the busy GPUs in the one before, and the doublings left. ``rates``
    [jobs] receives iterations per second: in the long run if they have settled, since the last call otherwise.
    ``left`` [3, jobs]: what is left of each iteration. ``times`` [jobs, 4]: compute (with pause), lead (with pause),
    communication, offset. The others are kept from call to call, or are room: ``by_job`` [4, jobs] has speeds,
    since when each job has been as it is, when something happens to it next, and room for new speeds; ``flags``
    [3, jobs] who sends, who sent and room; ``numbers`` [5, jobs] all jobs and room; ``by_link`` [2, links] room.
    """
    # Sums in the order of the jobs: compiled and not compiled, the numbers are the same.
    speed, since, due, fresh = by_job[0], by_job[1], by_job[2], by_job[3]
    sending, last, inside = flags[0], flags[1], flags[2]
    everybody, ready, waiting, anew, room = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    free, wanted = by_link[0], by_link[1]
    waits = turns[1]
    begin, now, done = clock[0], clock[0], sums[0].copy()
    while True:
        stop = min(clock[1], target_s)
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
                    if abs(fresh[job] - speed[job]) > _FULL:
                        bring_to(now, who[place : place + 1], left, times, speed, turns, since, sums)
                        speed[job] = fresh[job]
                        expect(who[place : place + 1], now, left, waits, speed, due)
                        count = pass_on(job, levels[job] + 1, near, sending, levels, inside, waiting, count)
            now = min(stop, due.min())
        bring_to(now, everybody, left, times, speed, turns, since, sums)
        clock[0] = now
        if stop >= target_s:
            if now > begin:
                rates[:] = (sums[0] - done) / (now - begin)
            return False
        if clock[2] < 0.0:
            rates[:] = sums[0] / now
        else:
            weighted(sums, half, now, rates)
        busy = np.cumsum(weights * rates * times[:, 0])[-1]
        stands_still = abs(busy - clock[2]) < TOLERANCE * np.cumsum(weights)[-1]
        if clock[3] == 0.0 or stands_still:
            return True
        half[:] = sums
        clock[1], clock[2], clock[3] = 2.0 * stop, busy, clock[3] - 1.0
