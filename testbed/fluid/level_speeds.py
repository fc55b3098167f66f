"""Speeds of jobs on links that serve levels strictly: found anew level by level, for those who feel a change; compiled.

Whoever begins or ends changes what is left for those of its own and of lower levels on its links, where these can be
full (:func:`.shared_links.that_can_be_full`). These change others only if their own speed does, so a change goes no
further than it is felt.
"""

from __future__ import annotations

from testbed.fluid.compiled import compiled
from testbed.fluid.maxmin import Flags, Floats, Integers
from testbed.fluid.shared_links import FULL, Rows, Users


@compiled
def remember(job: int, queue: Integers, count: int, levels: Integers, inside: Flags) -> int:
    """Put ``job`` behind those of its level in the first ``count`` of ``queue``; return how many are there then.

    ``inside`` says who is there.
    """
    if inside[job]:
        return count
    inside[job] = True
    at = count
    while at > 0 and levels[queue[at - 1]] > levels[job]:
        queue[at] = queue[at - 1]
        at -= 1
    queue[at] = job
    return count + 1


@compiled
def who_feel(
    changed: Integers,
    some: int,
    sending: Flags,
    last: Flags,
    slows: Rows,
    levels: Integers,
    inside: Flags,
    queue: Integers,
) -> int:
    """Write into ``queue``, in order of their level, who may feel first that one of ``changed`` began or ended.

    That is who began, and those whom one who ended may slow. Return how many. ``slows``: whom each job may slow, those
    of its own and of lower levels. ``last`` is brought up to date. ``inside`` is False before, and then says who they
    are.
    """
    rows, others = slows
    count = 0
    for place in range(some):
        job = changed[place]
        if sending[job] == last[job]:
            continue
        last[job] = sending[job]
        if sending[job]:
            count = remember(job, queue, count, levels, inside)
            continue
        for at in range(rows[job], rows[job + 1]):
            if sending[others[at]]:
                count = remember(others[at], queue, count, levels, inside)
    return count


@compiled
def with_their_level(
    queue: Integers, first: int, count: int, sending: Flags, slows: Rows, levels: Integers, inside: Flags
) -> tuple[int, int]:
    """Add to ``queue`` whom those of the level of the ``first`` one may slow at it; return that level's end, and its.

    Jobs of one level share the links that they can fill, so all of them get other speeds.
    """
    rows, others = slows
    level, at = levels[queue[first]], first
    while at < count and levels[queue[at]] == level:
        for place in range(rows[queue[at]], rows[queue[at] + 1]):
            if sending[others[place]] and levels[others[place]] == level:
                count = remember(others[place], queue, count, levels, inside)
        at += 1
    return at, count


@compiled
def speeds(
    who: Integers,
    first: int,
    end: int,
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
    """Write the speeds, 0 to 1, of the jobs from ``first`` to ``end`` in ``who``, all of a level, into ``out``.

    Max-min fair; those of more urgent levels keep their ``speed``, which takes its part of links first. ``links`` and
    ``shares``, in rows by job, are those that may slow the job; ``users`` are all users of every link. ``free`` and
    ``wanted`` [links] and ``growing`` [jobs] are room to compute in; ``wanted`` holds zeros, before and after.
    """
    rows, others, parts = users
    left = end - first
    for one in range(left):
        job = growing[one] = who[first + one]
        for at in range(starts[job], starts[job + 1]):
            link, left_over = links[at], 1.0
            for place in range(rows[link], rows[link + 1]):
                if levels[others[place]] < levels[job]:
                    left_over -= parts[place] * speed[others[place]]
            free[link] = left_over
    if left == 1:
        out[growing[0]] = fill(growing[0], starts, links, shares, free)
        return
    reached = 0.0
    while left > 0:
        reached += rise_together(growing, left, starts, links, shares, free, wanted, 1.0 - reached)
        still = 0
        for one in range(left):
            job, stops = growing[one], reached >= 1.0 - FULL
            for at in range(starts[job], starts[job + 1]):
                stops = stops or free[links[at]] <= FULL
            if stops:
                out[job] = reached
            else:
                growing[still] = job
                still += 1
        left = still


@compiled
def fill(job: int, starts: Integers, links: Integers, shares: Floats, free: Floats) -> float:
    """Return the speed, 1 at most, at which a job alone at its level fills a link."""
    speed = 1.0
    for place in range(starts[job], starts[job + 1]):
        if shares[place] > 0.0:
            speed = min(speed, free[links[place]] / shares[place])
    return max(speed, 0.0)


@compiled
def rise_together(
    growing: Integers,
    some: int,
    starts: Integers,
    links: Integers,
    shares: Floats,
    free: Floats,
    wanted: Floats,
    most: float,
) -> float:
    """Return by how much, ``most`` at most, the speeds of the first jobs ``growing`` can rise until a link is full.

    ``free`` falls accordingly.
    """
    rise = most
    for one in range(some):
        for place in range(starts[growing[one]], starts[growing[one] + 1]):
            wanted[links[place]] += shares[place]
    for one in range(some):
        for place in range(starts[growing[one]], starts[growing[one] + 1]):
            link = links[place]
            if wanted[link] > 0.0:
                rise = min(rise, free[link] / wanted[link])
    rise = max(rise, 0.0)
    for one in range(some):
        for place in range(starts[growing[one]], starts[growing[one] + 1]):
            link = links[place]
            free[link] -= rise * wanted[link]
            wanted[link] = 0.0
    return rise


@compiled
def that_change(who: Integers, first: int, end: int, inside: Flags, speed: Floats, fresh: Floats, out: Integers) -> int:
    """Write into ``out`` those from ``first`` to ``end`` in ``who`` that get another speed; return how many.

    ``inside`` is False for all of them afterwards.
    """
    count = 0
    for place in range(first, end):
        job = who[place]
        inside[job] = False
        if fresh[job] != speed[job]:
            out[count] = job
            count += 1
    return count


@compiled
def those_below(
    changed: Integers,
    some: int,
    queue: Integers,
    count: int,
    sending: Flags,
    slows: Rows,
    levels: Integers,
    inside: Flags,
) -> int:
    """Add to ``queue`` who sends at a lower level and may be slowed by one of ``changed``; return how many it has."""
    rows, others = slows
    for place in range(some):
        job = changed[place]
        for at in range(rows[job], rows[job + 1]):
            if sending[others[at]] and levels[others[at]] > levels[job]:
                count = remember(others[at], queue, count, levels, inside)
    return count
