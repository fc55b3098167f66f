"""Rates of flows computed again only where a change can have affected them.

Flows that share no link, not even through others, and do not follow each other cannot affect each other's rates. So a
change is followed from link to flow to link, and max-min fair shares are computed for what it reaches.
"""

from __future__ import annotations

import numpy as np

from testbed.engines.flow.columns import LIMIT, NOBODY, RATE, WEIGHT
from testbed.fluid.compiled import compiled_or
from testbed.fluid.maxmin import MAX_MIN, Flags, Floats, Integers, rates


def reached_by_arrays(changed: Flags, links: Flags, active: Integers, ways: Integers, after: Integers) -> Flags:
    """As :func:`reached_by`, by operations on arrays."""
    links[_of(ways[np.flatnonzero(changed)])] = True
    own = ways[active]
    there = own >= 0
    at, leaders = np.where(there, own, 0), after[active]
    follows = leaders >= 0
    found = np.zeros(len(active), np.bool_)
    reached = changed.copy()
    while True:
        hit = changed[active] | (links[at] & there).any(axis=1) | (follows & reached[leaders])
        hit &= ~found
        if not hit.any():
            return found
        found |= hit
        reached[active[hit]] = True
        links[_of(own[hit])] = True
        links[_of(ways[leaders[hit & follows]])] = True


def _of(ways: Integers) -> Integers:
    """The links of ``ways``, one behind the other."""
    return ways[ways >= 0]


@compiled_or(reached_by_arrays)
def reached_by(changed: Flags, links: Flags, active: Integers, ways: Integers, after: Integers) -> Flags:
    """Return for each ``active`` flow whether the ``changed`` flows and ``links`` can affect it.

    ``ways`` [flows, hops]: link numbers, -1 behind the end; ``after`` [flows]: whom flows that have caught up follow,
    -1 for none. ``links`` [links] has all links of the flows that are found afterwards, too.
    """
    found = np.zeros(len(active), np.bool_)
    reached = changed.copy()
    for flow in np.flatnonzero(changed):
        for link in ways[flow]:
            if link >= 0:
                links[link] = True
    left, count = np.arange(len(active)), len(active)
    again = True
    while again:
        again, waiting, count = False, count, 0
        for place in range(waiting):
            row = left[place]
            flow = active[row]
            leader = after[flow]
            hit = changed[flow] or (leader >= 0 and reached[leader])
            for link in ways[flow]:
                if link >= 0 and links[link]:
                    hit = True
            if not hit:
                left[count] = row
                count += 1
                continue
            found[row] = reached[flow] = again = True
            for link in ways[flow]:
                if link >= 0:
                    links[link] = True
            if leader >= 0:
                for link in ways[leader]:
                    if link >= 0:
                        links[link] = True
    return found


def update_rates(
    values: Floats,
    changed: Flags,
    links: Flags,
    active: Integers,
    levels: Integers,
    ways: Integers,
    parts: Floats,
    after: Integers,
    capacity: Floats,
) -> None:
    """Compute the max-min fair rates that the ``changed`` flows and ``links`` can affect; no link is marked afterwards.

    ``values`` [flows, columns]: see :mod:`testbed.engines.flow.columns`; the rates of ``active`` flows are there
    afterwards. The rest is as for :func:`reached_by` and :func:`testbed.fluid.maxmin.rates`.
    """
    affected = active[reached_by(changed, links, active, ways, after)]
    used = np.flatnonzero(links)
    links[used] = False
    if not affected.size:
        return
    leaders = after[affected]
    flows = np.unique(np.concatenate((affected, leaders[leaders >= 0])))
    place, number = np.empty(len(changed), np.int64), np.empty(len(capacity), np.int64)
    place[flows], number[used] = np.arange(len(flows)), np.arange(len(used))
    there = np.zeros(len(flows), np.bool_)
    there[place[affected]] = True
    own, followed = ways[flows], np.where(there, after[flows], NOBODY)
    found = np.zeros(len(flows))
    rates(
        there,
        levels[flows],
        np.where(own >= 0, number[own], -1),
        parts[flows],
        values[flows, LIMIT],
        values[flows, WEIGHT],
        np.where(followed >= 0, place[followed], NOBODY),
        capacity[used],
        found,
        MAX_MIN,
    )
    values[affected, RATE] = found[there]
