"""The speeds of jobs that send under strict priority, brought up to date from level to level; compiled.

Arrays are by job. A job that begins or ends to send is felt by those it shares links with, of its own and of lower
levels; from there on only by those beside a job whose speed has changed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from testbed.fluid.compiled import compiled
from testbed.fluid.maxmin import Flags, Floats, Integers

FULL: Final = 1e-12
"""Share of a link, or of full speed, that counts as rounding."""
_UNKNOWN: Final = 2.0
"""More than any link has free."""

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
            stops = reached >= 1.0 - FULL
            for link in links[starts[job] : starts[job + 1]]:
                stops = stops or free[link] <= FULL
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
