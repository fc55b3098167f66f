"""The links that several jobs use, without those that make no difference, and who meets or slows whom; compiled."""

from __future__ import annotations

from typing import Final

import numpy as np

from testbed.fluid.compiled import compiled
from testbed.fluid.maxmin import Flags, Floats, Integers

Rows = tuple[Integers, Integers]
"""Numbers in rows: starts [rows + 1], and the numbers of one row after the other."""
Users = tuple[Integers, Integers, Floats]
"""What :func:`users_of` returns."""
SharedLinks = tuple[Integers, Integers, Floats, int]
"""What :func:`rows_by_job` returns."""
FULL: Final = 1e-12
"""Share of a link that is nothing but rounding."""


@compiled
def rows_by_job(links: Integers, users: Integers, parts: Floats, jobs: int) -> SharedLinks:
    """Return the links that several jobs use, in rows by job: starts [jobs + 1], link numbers from 0, shares; a count.

    ``users`` of ``links`` are numbers of jobs below ``jobs``, in ascending order; ``parts`` their shares at full speed.
    Of links with the same users only those matter that are not less loaded by everyone than another.
    """
    order = np.argsort(links, kind="mergesort")  # a stable one
    kept, count = shared_rows(links[order], users[order], parts[order], jobs)
    starts = np.zeros(jobs + 1, np.int64)
    for row in range(len(kept)):
        starts[int(kept[row, 0]) + 1] += 1
    for job in range(jobs):
        starts[job + 1] += starts[job]
    at, numbers, shares = starts[:jobs].copy(), np.zeros(len(kept), np.int64), np.zeros(len(kept))
    for row in range(len(kept)):
        job = int(kept[row, 0])
        numbers[at[job]], shares[at[job]] = int(kept[row, 1]), kept[row, 2]
        at[job] += 1
    return starts, numbers, shares, count


@compiled
def shared_rows(links: Integers, users: Integers, parts: Floats, jobs: int) -> tuple[Floats, int]:
    """Return rows of a user, a link's new number and the user's share of it; and how many links there are.

    Entries are ordered by link, then user. Of links with the same users those are left out that everybody loads at
    most as much as another one. ``jobs`` is the number of users.
    """
    total = len(links)
    kept_from, kept_to, last = np.zeros(total, np.int64), np.zeros(total, np.int64), np.full(jobs + 1, -1)
    before = np.full(total, -1)  # links of the same first user and as many users, the last one first
    alive: Flags = np.zeros(total, np.bool_)
    found, start = 0, 0
    while start < total:
        end, several = start, 0
        while end < total and links[end] == links[start]:
            several += parts[end] > 0.0
            end += 1
        if several > 1:
            first = start
            while parts[first] <= 0.0:
                first += 1
            other, smaller = last[users[first]], False
            while other >= 0 and not smaller:
                if alive[other]:
                    same, least, most = compare(users, parts, start, end, kept_from[other], kept_to[other])
                    smaller = same and most
                    if same and least and not most:
                        alive[other] = False
                other = before[other]
            if not smaller:
                kept_from[found], kept_to[found], alive[found] = start, end, True
                before[found], last[users[first]] = last[users[first]], found
                found += 1
        start = end
    count, size = 0, 0
    rows = np.empty((total, 3))
    for link in range(found):
        if alive[link]:
            for place in range(kept_from[link], kept_to[link]):
                if parts[place] > 0.0:
                    rows[size, 0], rows[size, 1], rows[size, 2] = users[place], count, parts[place]
                    size += 1
            count += 1
    return rows[:size], count


@compiled
def compare(users: Integers, parts: Floats, start: int, end: int, from_: int, to: int) -> tuple[bool, bool, bool]:
    """Compare a link with another: the same users? everybody at least as much? at most as much?"""
    least, most = True, True
    one, other = start, from_
    while True:
        while one < end and parts[one] <= 0.0:
            one += 1
        while other < to and parts[other] <= 0.0:
            other += 1
        if one == end or other == to:
            return one == end and other == to, least, most
        if users[one] != users[other]:
            return False, False, False
        least = least and parts[one] >= parts[other]
        most = most and parts[one] <= parts[other]
        one += 1
        other += 1


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
def that_can_be_full(starts: Integers, links: Integers, shares: Floats, users: Users, levels: Integers) -> Users:
    """Return, in rows by job like ``links`` and ``shares``, the links that may slow the job: starts, links, shares.

    Those of its own and of more urgent ``levels`` take such a link first or together with it. Where all of them at full
    speed leave some of it, it slows none of them; it may slow those below.
    """
    rows, others, parts = users
    kept, kept_links, kept_shares = np.zeros_like(starts), np.empty_like(links), np.empty_like(shares)
    size = 0
    for job in range(len(starts) - 1):
        for place in range(starts[job], starts[job + 1]):
            link, taken = links[place], 0.0
            for at in range(rows[link], rows[link + 1]):
                if levels[others[at]] <= levels[job]:
                    taken += parts[at]
            if taken > 1.0 + FULL:
                kept_links[size], kept_shares[size] = link, shares[place]
                size += 1
        kept[job + 1] = size
    return kept, kept_links[:size].copy(), kept_shares[:size].copy()


@compiled
def whom_they_slow(starts: Integers, links: Integers, users: Users, levels: Integers) -> Rows:
    """Return whom each job may slow directly, in rows by job: those of its own level and of less urgent ``levels``.

    ``links`` in rows by job are those that may slow it (:func:`that_can_be_full`), ``users`` the users of all links.
    """
    jobs = len(starts) - 1
    rows, others, _ = users
    slows = np.zeros((jobs, jobs), np.bool_)
    for job in range(jobs):
        for place in range(starts[job], starts[job + 1]):
            for at in range(rows[links[place]], rows[links[place] + 1]):
                if levels[others[at]] <= levels[job]:
                    slows[others[at], job] = True
        slows[job, job] = False
    return rows_of(slows)


@compiled
def neighbours(starts: Integers, links: Integers, count: int) -> Rows:
    """Return which jobs share a link, in rows by job: starts [jobs + 1] and jobs."""
    jobs = len(starts) - 1
    uses = np.zeros((count, jobs), np.bool_)
    for job in range(jobs):
        for place in range(starts[job], starts[job + 1]):
            uses[links[place], job] = True
    near = np.zeros((jobs, jobs), np.bool_)
    for job in range(jobs):
        for place in range(starts[job], starts[job + 1]):
            near[job] |= uses[links[place]]
        near[job, job] = False
    return rows_of(near)


@compiled
def rows_of(flags: Flags) -> Rows:
    """Return the columns that are true in each row of ``flags``."""
    count, size = len(flags), 0
    starts, columns = np.zeros(count + 1, np.int64), np.empty(flags.sum(), np.int64)
    for row in range(count):
        for column in range(flags.shape[1]):
            if flags[row, column]:
                columns[size] = column
                size += 1
        starts[row + 1] = size
    return starts, columns
