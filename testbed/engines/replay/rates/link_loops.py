"""Loops over the links of jobs and the jobs of links, compiled: who meets whom, and who may slow whom.

A :data:`Table` has jobs and links by number; a job keeps its number while it is known. An infinite share is that of
something that jobs use in turns, such as GPUs: it is no link, and whoever shares it may slow the other.
"""

from __future__ import annotations

import numpy as np

from testbed.fluid.compiled import compiled
from testbed.fluid.maxmin import Flags, Floats, Integers
from testbed.fluid.shared_links import FULL, SharedLinks, rows_by_job

Table = tuple[Integers, Integers, Floats, Integers, Floats, Integers, Integers]
"""By link: how many jobs use it; which; the share of each at full speed. By job: its links; its shares; how many; its
level. The jobs of a link stand in no order."""


@compiled
def meet(job: int, table: Table, met: Flags) -> None:
    """Write into ``met`` [jobs] that ``job`` and all who share a link with it were met."""
    counts, users, _, own, _, sizes, _ = table
    met[job] = True
    for place in range(sizes[job]):
        link = own[job, place]
        for at in range(counts[link]):
            met[users[link, at]] = True


@compiled
def leave(job: int, table: Table) -> None:
    """Take ``job`` off its links."""
    counts, users, parts, own, _, sizes, _ = table
    for place in range(sizes[job]):
        link, at = own[job, place], 0
        while users[link, at] != job:
            at += 1
        counts[link] -= 1
        users[link, at], parts[link, at] = users[link, counts[link]], parts[link, counts[link]]
    sizes[job] = 0


@compiled
def most_users(links: Integers, counts: Integers) -> int:
    """Return how many jobs use the most crowded one of ``links``."""
    most = 0
    for link in links:
        most = max(most, counts[link])
    return most


@compiled
def enter(job: int, links: Integers, shares: Floats, level: int, table: Table) -> None:
    """Put ``job``, which has no links, at ``level`` on ``links``, each with its share; there is room for it."""
    counts, users, parts, own, own_shares, sizes, levels = table
    for place in range(len(links)):
        link, share = links[place], shares[place]
        own[job, place], own_shares[job, place] = link, share
        users[link, counts[link]], parts[link, counts[link]] = job, share
        counts[link] += 1
    sizes[job], levels[job] = len(links), level


@compiled
def put_on(job: int, links: Integers, shares: Floats, level: int, table: Table, met: Flags) -> bool:
    """Move ``job`` from its links, if it has any, to others; :func:`meet` whom it meets before and after.

    Return False where a link has no room for one more user: then the job has no links.
    """
    meet(job, table, met)
    leave(job, table)
    if most_users(links, table[0]) >= table[1].shape[1]:
        return False
    enter(job, links, shares, level, table)
    meet(job, table, met)
    return True


@compiled
def take_off(job: int, table: Table, met: Flags) -> None:
    """Take ``job`` off its links, and write into ``met`` whom it met there."""
    meet(job, table, met)
    leave(job, table)
    met[job] = False


@compiled
def who_slows(jobs: Integers, table: Table, met: Flags) -> tuple[Integers, Integers, Flags]:
    """Return who may slow each of ``jobs`` directly, in rows: starts and jobs; and whether it meets anybody.

    These are the jobs of its own and of more urgent levels with whom it could fill a link, all sending at full speed,
    and all with whom it takes turns. ``met`` [jobs] is False, before and after.
    """
    counts, users, parts, own, shares, sizes, levels = table
    starts, meets = np.zeros(len(jobs) + 1, np.int64), np.zeros(len(jobs), np.bool_)
    found, size = np.empty(16 * len(jobs) + len(met), np.int64), 0
    for row in range(len(jobs)):
        job = jobs[row]
        if size + len(met) > len(found):
            longer = np.empty(2 * len(found) + len(met), np.int64)
            longer[:size] = found[:size]
            found = longer
        met[job] = True
        for place in range(sizes[job]):
            link = own[job, place]
            if counts[link] < 2:
                continue
            meets[row] = True
            taken, in_turns = 0.0, shares[job, place] == np.inf
            for at in range(counts[link]):
                if levels[users[link, at]] <= levels[job]:
                    taken += parts[link, at]
            if taken <= 1.0 + FULL:
                continue
            for at in range(counts[link]):
                other = users[link, at]
                if not met[other] and (in_turns or levels[other] <= levels[job]):
                    met[other] = True
                    found[size] = other
                    size += 1
        starts[row + 1] = size
        met[job] = False
        for at in range(starts[row], size):
            met[found[at]] = False
    return starts, found[:size].copy(), meets


@compiled
def links_shared_among(jobs: Integers, table: Table, places: Integers) -> SharedLinks:
    """Return the links that several of ``jobs`` use, by place in ``jobs``, as :func:`.rows_by_job` does.

    ``places`` [jobs known] is -1 everywhere, before and after.
    """
    counts, users, _, own, shares, sizes, _ = table
    total = 0
    for place in range(len(jobs)):
        places[jobs[place]] = place
        total += sizes[jobs[place]]
    links, numbers, parts, size = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total), 0
    for place in range(len(jobs)):
        job = jobs[place]
        for at in range(sizes[job]):
            link = own[job, at]
            if counts[link] < 2 or shares[job, at] == np.inf:
                continue
            several = 0
            for user in range(counts[link]):
                several += places[users[link, user]] >= 0
            if several > 1:
                links[size], numbers[size], parts[size] = link, place, shares[job, at]
                size += 1
    for job in jobs:
        places[job] = -1
    return rows_by_job(links[:size], numbers[:size], parts[:size], len(jobs))
