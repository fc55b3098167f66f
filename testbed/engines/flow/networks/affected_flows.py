"""Rates of flows computed again only where a change can have affected them.

Flows that share no link, not even through others, and do not follow each other cannot affect each other's rates. So a
change is followed from link to flow to link, and max-min fair shares are computed for what it reaches.
"""

from __future__ import annotations

import numpy as np

from testbed.engines.flow.columns import LIMIT, RATE, WEIGHT
from testbed.fluid.compiled import compiled_or
from testbed.fluid.maxmin import MAX_MIN, Flags, Floats, Integers, rates


def reached_by_arrays(changed: Flags, links: Flags, sending: Flags, ways: Integers, after: Integers) -> Flags:
    """As :func:`reached_by`, by operations on arrays."""
    there = ways >= 0
    at = np.where(there, ways, 0)
    links[ways[changed[:, None] & there]] = True
    follows = sending & (after >= 0)
    found = np.zeros(len(sending), np.bool_)
    while True:
        hit = changed | (links[at] & there).any(axis=1) | (follows & (found | changed)[after])
        hit &= sending & ~found
        if not hit.any():
            return found
        found |= hit
        leaders = after[hit & follows]
        links[ways[hit[:, None] & there]] = True
        leading = np.zeros(len(sending), np.bool_)
        leading[leaders] = True
        links[ways[leading[:, None] & there]] = True


@compiled_or(reached_by_arrays)
def reached_by(changed: Flags, links: Flags, sending: Flags, ways: Integers, after: Integers) -> Flags:
    """Return which flows that are ``sending`` the ``changed`` flows and ``links`` can affect.

    ``ways`` [flows, hops]: link numbers, -1 behind the end; ``after`` [flows]: whom flows that have caught up follow,
    -1 for none. ``links`` [links] has all links of the flows that are found afterwards, too.
    """
    found = np.zeros(len(sending), np.bool_)
    left = np.empty(len(sending), np.int64)
    count = 0
    for flow in range(len(sending)):
        if changed[flow]:
            for link in ways[flow]:
                if link >= 0:
                    links[link] = True
        if sending[flow]:
            left[count] = flow
            count += 1
    again = True
    while again:
        again, waiting, count = False, count, 0
        for place in range(waiting):
            flow = left[place]
            leader = after[flow]
            hit = changed[flow] or (leader >= 0 and (found[leader] or changed[leader]))
            for link in ways[flow]:
                if link >= 0 and links[link]:
                    hit = True
            if not hit:
                left[count] = flow
                count += 1
                continue
            found[flow] = again = True
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
    sending: Flags,
    levels: Integers,
    ways: Integers,
    parts: Floats,
    after: Integers,
    capacity: Floats,
) -> None:
    """Compute the max-min fair rates that the ``changed`` flows and ``links`` can affect.

    ``values`` [flows, columns]: see :mod:`testbed.engines.flow.columns`; the rates are there afterwards, 0 for changed
    flows that send nothing. The rest is as for :func:`reached_by` and :func:`testbed.fluid.maxmin.rates`.
    """
    affected = reached_by(changed, links, sending, ways, after)
    values[np.flatnonzero(changed & ~sending), RATE] = 0.0
    leaders = after[np.flatnonzero(affected)]
    needed = affected.copy()
    needed[leaders[leaders >= 0]] = True
    flows, used = np.flatnonzero(needed), np.flatnonzero(links)
    place, number = np.empty(len(sending), np.int64), np.empty(len(capacity), np.int64)
    place[flows], number[used] = np.arange(len(flows)), np.arange(len(used))
    own, followed, there = ways[flows], after[flows], affected[flows]
    found = np.zeros(len(flows))
    rates(
        there,
        levels[flows],
        np.where(own >= 0, number[own], -1),
        parts[flows],
        values[flows, LIMIT],
        values[flows, WEIGHT],
        np.where(followed >= 0, place[followed], -1),
        capacity[used],
        found,
        MAX_MIN,
    )
    values[flows[there], RATE] = found[there]
