"""Rates of flows that keep a fixed window in flight: proportionally fair; compiled.

A flow with a window in flight sends that much in the time its packets wait in the queues of its way. Queues grow until
no link is asked for more than it has: a full link has a waiting time, others have none. With equal windows that is the
allocation with the largest sum of logarithms of the rates (Mo and Walrand, "Fair end-to-end window-based congestion
control", 2000; Kelly, "Charging and rate control for elastic traffic", 1997). A flow that waits in two queues gets less
than one that waits in one of them; max-min fairness gives both the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testbed.fluid.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_ROUNDS = 400
_CLOSE = 1e-6
"""Relative change of every rate below which the waiting times are found."""
_NO_WAIT = 1e-4
"""Share of a crowded link's waiting time that counts as none: a time of 0 could not grow again."""
_NOTHING = 1e-9
"""Share of its capacity that a link has left where higher levels take all."""


@compiled
def by_waiting(
    sharing: Flags, ways: Integers, bounds: Floats, weights: Floats, after: Integers, waiting_s: Floats, out: Floats
) -> float:
    """Write the rates that follow from the links' ``waiting_s`` (per byte in flight); return their largest change.

    ``weights`` [flows]: windows, in units of that of a flow of weight 1. A flow that follows another of those
    ``sharing`` is no faster than that one.
    """
    change = 0.0
    before = out.copy()
    for flow in range(len(sharing)):
        if sharing[flow]:
            total = 0.0
            for link in ways[flow]:
                if link >= 0:
                    total += waiting_s[link]
            out[flow] = bounds[flow] if total * bounds[flow] <= weights[flow] else weights[flow] / total
    again = True
    while again:
        again = False
        for flow in range(len(sharing)):
            leader = after[flow]
            if sharing[flow] and leader >= 0 and sharing[leader] and out[flow] > out[leader]:
                out[flow] = out[leader]
                again = True
    for flow in range(len(sharing)):
        if sharing[flow]:
            change = max(change, abs(out[flow] - before[flow]) / max(out[flow], 1e-300))
    return change


@compiled
def loads_of(sharing: Flags, ways: Integers, out: Floats, loads: Floats) -> None:
    """Write into ``loads`` [links] the sums of the rates of the flows ``sharing``."""
    loads[:] = 0.0
    for flow in range(len(sharing)):
        if sharing[flow]:
            for link in ways[flow]:
                if link >= 0:
                    loads[link] += out[flow]


@compiled
def share_in_proportion(
    sharing: Flags,
    ways: Integers,
    bounds: Floats,
    weights: Floats,
    after: Integers,
    capacity: Floats,
    free: Floats,
    out: Floats,
) -> None:
    """Write into ``out`` the rates of the flows ``sharing`` what is ``free``, which falls accordingly.

    Arguments as those of :func:`testbed.fluid.maxmin.fill`. The waiting times are found by scaling each with the root
    of its link's load over capacity; then all rates are made to fit.
    """
    crowd = np.zeros(len(capacity))
    for flow in range(len(sharing)):
        if sharing[flow]:
            out[flow] = 0.0
            for link in ways[flow]:
                if link >= 0:
                    crowd[link] += weights[flow]
    room = np.maximum(free, _NOTHING * capacity)
    crowd = crowd / room
    waiting_s = crowd.copy()
    loads = np.zeros(len(capacity))
    for _ in range(_ROUNDS):
        change = by_waiting(sharing, ways, bounds, weights, after, waiting_s, out)
        loads_of(sharing, ways, out, loads)
        if change < _CLOSE:
            break
        for link in range(len(capacity)):
            if crowd[link] > 0.0:
                waiting_s[link] = max(_NO_WAIT * crowd[link], waiting_s[link] * np.sqrt(loads[link] / room[link]))
    for flow in range(len(sharing)):
        if sharing[flow]:
            most = 1.0
            for link in ways[flow]:
                if link >= 0:
                    most = max(most, loads[link] / room[link])
            out[flow] /= most
    loads_of(sharing, ways, out, loads)
    for link in range(len(capacity)):
        free[link] = max(0.0, free[link] - loads[link])
