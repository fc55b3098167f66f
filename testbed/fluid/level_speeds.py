"""Who feels it on links that serve levels strictly if a job begins or ends to send, level by level; compiled.

Whoever begins or ends changes what is left for those of its own and of lower levels on its links, where these can be
full (:func:`.shared_links.that_can_be_full`). These change others only if their own speed does, so a change goes no
further than it is felt. The new speeds of a level: :mod:`.fair_speeds`.
"""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.fluid.maxmin import Flags, Integers
from testbed.fluid.shared_links import Rows


@compiled_in_place
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


@compiled_in_place
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


@compiled_in_place
def end_of_level(queue: Integers, first: int, count: int, levels: Integers, inside: Flags) -> int:
    """Return where those of the level of the ``first`` one end in ``queue``; they are no longer ``inside``."""
    end = first
    while end < count and levels[queue[end]] == levels[queue[first]]:
        inside[queue[end]] = False
        end += 1
    return end


@compiled_in_place
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
