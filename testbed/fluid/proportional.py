"""Rates of flows that keep a fixed window in flight: proportionally fair; compiled.

A flow with a window in flight sends that much in the time its packets wait in the queues of its way. Queues grow until
no link is asked for more than it has: a full link has a waiting time, others have none. With equal windows that is the
allocation with the largest sum of logarithms of the rates (Mo and Walrand, "Fair end-to-end window-based congestion
control", 2000; Kelly, "Charging and rate control for elastic traffic", 1997). A flow that waits in two queues gets less
than one that waits in one of them; max-min fairness gives both the same.

A host lets no flow have its whole window waiting in the host's own NIC (TCP small queues): a flow is no faster than
that share of its window per waiting time there, and queues further on slow it less if its NIC is full too.

The waiting times are the root of a function that is linear in pieces of its arguments: a link either waits or is not
full. A Newton step solves for all links at once with the pieces that hold now (Qi and Sun, "A nonsmooth version of
Newton's method", 1993). Where a step does not help, each waiting time is scaled by its link's load over capacity, which
always brings it nearer if no flow forwards. Waiting times that were found last are a good first guess, since one event
changes few of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testbed.fluid.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

AT_OWN_NIC = 0.5
"""Share of its window that a flow has waiting in its own NIC at most. Two packets of eight where messages are long; the
first window of a message waits for no acknowledgement, so that with short messages it is more: 0.2 to 0.6 measured
(``benchmarks.window_shares``)."""
_ROUNDS = 1000
_NEWTON_ROUNDS = 100
"""Rounds after which waiting times are only scaled."""
_LEAST_STEP = 1 / 1024
"""Share of a Newton step below which it counts as one that does not help."""
_SCALINGS = 8
"""Scalings in place of a Newton step that does not help."""
_CLOSE = 1e-6
"""Error at which the waiting times are found: share of a link's capacity, or of the waiting time of a full one."""
_NO_WAIT = 1e-4
"""Share of a crowded link's waiting time that counts as none: a time of 0 could not be scaled up again."""
_APART = 1e-9
"""Share by which equations are moved apart, so that a Newton step has one answer."""
_NOTHING = 1e-9
"""Share of its capacity that a link has left where higher levels take all."""
_SHRINK = 0.1
"""Share of a waiting time that a step leaves at least: a flow that waits nowhere would be infinitely fast."""


@compiled
def rates_by_waiting(
    flows: Integers,
    ways: Integers,
    bounds: Floats,
    weights: Floats,
    leaders: Integers,
    waiting_s: Floats,
    out: Floats,
    set_by: Integers,
    at_nic: Flags,
) -> None:
    """Write into ``out`` the rates of ``flows`` that follow from the links' ``waiting_s`` (per byte in flight).

    ``leaders``: whom a flow has caught up with, -1 for none; it is no faster. ``set_by``: the flow whose waiting
    decides the rate of each, -1 where it is at a bound; ``at_nic``: whether a flow's own waiting is that at its NIC
    alone, where it has :data:`AT_OWN_NIC` of its window.
    """
    for flow in flows:
        total = 0.0
        for link in ways[flow]:
            if link >= 0:
                total += waiting_s[link]
        nic_s = waiting_s[ways[flow][0]] / AT_OWN_NIC if ways[flow][0] >= 0 else 0.0
        at_nic[flow] = nic_s > total
        total = max(total, nic_s)
        if total * bounds[flow] <= weights[flow]:
            out[flow], set_by[flow] = bounds[flow], -1
        else:
            out[flow], set_by[flow] = weights[flow] / total, flow
    again = True
    while again:
        again = False
        for flow in flows:
            leader = leaders[flow]
            if leader >= 0 and out[flow] > out[leader]:
                out[flow], set_by[flow] = out[leader], set_by[leader]
                again = True


@compiled
def loads_of(flows: Integers, ways: Integers, out: Floats, loads: Floats) -> None:
    """Write into ``loads`` [links] the sums of the rates of ``flows``."""
    loads[:] = 0.0
    for flow in flows:
        for link in ways[flow]:
            if link >= 0:
                loads[link] += out[flow]


@compiled
def waits(link: int, waiting_s: Floats, crowd: Floats, loads: Floats, room: Floats) -> bool:
    """Whether ``link`` counts as one that is full, so that its load decides and not its waiting time."""
    return bool(1.0 - loads[link] / room[link] < waiting_s[link] / crowd[link] - _NO_WAIT)


@compiled
def error_of(links: Integers, waiting_s: Floats, crowd: Floats, loads: Floats, room: Floats) -> float:
    """Return how far any of ``links`` is from being either full or without waiting."""
    most = 0.0
    for link in links:
        if waits(link, waiting_s, crowd, loads, room):
            most = max(most, abs(1.0 - loads[link] / room[link]))
        else:
            most = max(most, abs(waiting_s[link] / crowd[link] - _NO_WAIT))
    return most


@compiled
def solve_in_place(matrix: Floats, right: Floats) -> None:
    """Write into ``right`` the solution of ``matrix @ x = right``, by elimination with pivots; both are overwritten."""
    size = len(right)
    for column in range(size):
        pivot = column + np.argmax(np.abs(matrix[column:, column]))
        if pivot != column:
            for other in range(column, size):
                matrix[column, other], matrix[pivot, other] = matrix[pivot, other], matrix[column, other]
            right[column], right[pivot] = right[pivot], right[column]
        for row in range(column + 1, size):
            factor = matrix[row, column] / matrix[column, column]
            if factor != 0.0:
                matrix[row, column + 1 :] -= factor * matrix[column, column + 1 :]
                right[row] -= factor * right[column]
    for row in range(size - 1, -1, -1):
        for other in range(row + 1, size):
            right[row] -= matrix[row, other] * right[other]
        right[row] /= matrix[row, row]


@compiled
def newton_step(
    flows: Integers,
    links: Integers,
    ways: Integers,
    weights: Floats,
    waiting_s: Floats,
    crowd: Floats,
    loads: Floats,
    room: Floats,
    out: Floats,
    set_by: Integers,
    at_nic: Flags,
) -> Floats:
    """Return the change of each link's waiting time after which full links are just full and the others do not wait."""
    number = np.full(len(room), -1)
    full = np.zeros(len(links), np.int64)
    size = 0
    change = np.zeros(len(room))
    for link in links:
        if waits(link, waiting_s, crowd, loads, room):
            full[size], number[link] = link, size
            size += 1
        else:
            change[link] = _NO_WAIT * crowd[link] - waiting_s[link]
    matrix, right = np.zeros((size, size)), np.zeros(size)
    for row in range(size):
        right[row] = loads[full[row]] / room[full[row]] - 1.0
    for flow in flows:
        first = set_by[flow]
        if first >= 0:
            slope, deciding = out[flow] * out[flow] / weights[first], ways.shape[1]
            if at_nic[first]:
                slope, deciding = slope / AT_OWN_NIC, 1
            for link in ways[flow]:
                if link >= 0 and number[link] >= 0:
                    row = number[link]
                    for other in ways[first][:deciding]:
                        if other >= 0 and number[other] >= 0:
                            matrix[row, number[other]] += slope / room[link] * crowd[other]
                        elif other >= 0:
                            right[row] -= slope / room[link] * change[other]
    for row in range(size):  # links that only the same flows cross have equations alike
        matrix[row, row] += _APART * (1.0 + matrix[row, row])
    solve_in_place(matrix, right)
    for row in range(size):
        change[full[row]] = right[row] * crowd[full[row]]
    return change


@compiled
def find_waiting(
    flows: Integers,
    links: Integers,
    ways: Integers,
    bounds: Floats,
    weights: Floats,
    leaders: Integers,
    waiting_s: Floats,
    crowd: Floats,
    room: Floats,
    loads: Floats,
    out: Floats,
) -> None:
    """Bring ``waiting_s`` to where full links are just full and others do not wait; ``out`` and ``loads`` follow.

    ``crowd`` [links] is the most that any link may need: the waiting time where all its flows wait for it alone.
    Each round tries waiting times: a Newton step, half of it where that does not help, and so on, then some scalings.
    """
    set_by, at_nic = np.full(len(out), -1), np.zeros(len(out), np.bool_)
    tried, change = waiting_s.copy(), np.zeros(len(room))
    error, share, scalings = np.inf, 0.0, 0
    for round_number in range(_ROUNDS):
        rates_by_waiting(flows, ways, bounds, weights, leaders, tried, out, set_by, at_nic)
        loads_of(flows, ways, out, loads)
        now = error_of(links, tried, crowd, loads, room)
        if now < _CLOSE:
            break
        if round_number > _NEWTON_ROUNDS:
            scalings = 2
        if scalings > 1:
            scalings -= 1
            for link in links:
                tried[link] = max(_NO_WAIT * crowd[link], tried[link] * loads[link] / room[link])
        elif scalings == 1 or now < error * (1.0 - 0.1 * share):
            waiting_s[:], error, share, scalings = tried, now, 1.0, 0
            change = newton_step(flows, links, ways, weights, waiting_s, crowd, loads, room, out, set_by, at_nic)
        else:
            share /= 2.0
            if share < _LEAST_STEP:
                scalings = _SCALINGS
        if scalings == _SCALINGS:
            tried[:] = waiting_s
        elif scalings == 0:
            for link in links:
                least = max(_NO_WAIT * crowd[link], _SHRINK * waiting_s[link])
                step = min(change[link], crowd[link] - waiting_s[link])
                tried[link] = max(waiting_s[link] + share * step, least)
    waiting_s[:] = tried


@compiled
def share_in_proportion(
    sharing: Flags,
    ways: Integers,
    bounds: Floats,
    weights: Floats,
    after: Integers,
    capacity: Floats,
    free: Floats,
    guess_s: Floats,
    out: Floats,
) -> None:
    """Write into ``out`` the rates of the flows ``sharing`` what is ``free``, which falls accordingly.

    Arguments as those of :func:`testbed.fluid.maxmin.fill`; ``weights`` [flows] are windows, in units of that of a flow
    of weight 1. ``guess_s`` [links]: waiting times to begin with, 0 where none is known; those found are left there.
    What remains of the error is taken from the rates, so that no link gets more than it has.
    """
    flows = np.flatnonzero(sharing)
    leaders = np.full(len(sharing), -1)  # of other levels are bounds
    for flow in flows:
        if after[flow] >= 0 and sharing[after[flow]]:
            leaders[flow] = after[flow]
    crowd, room = np.zeros(len(capacity)), np.maximum(free, _NOTHING * capacity)
    for flow in flows:
        for link in ways[flow]:
            if link >= 0:
                crowd[link] += weights[flow] / room[link]
    links = np.flatnonzero(crowd)
    waiting_s, loads = np.zeros(len(capacity)), np.zeros(len(capacity))
    for link in links:
        waiting_s[link] = max(guess_s[link], _NO_WAIT * crowd[link]) if guess_s[link] > 0.0 else crowd[link]
    find_waiting(flows, links, ways, bounds, weights, leaders, waiting_s, crowd, room, loads, out)
    guess_s[:] = waiting_s
    for flow in flows:
        most = 1.0
        for link in ways[flow]:
            if link >= 0:
                most = max(most, loads[link] / room[link])
        out[flow] /= most
    loads_of(flows, ways, out, loads)
    for link in links:
        free[link] = max(0.0, free[link] - loads[link])
