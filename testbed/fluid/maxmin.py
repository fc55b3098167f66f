"""Rates of flows under strict priority, max-min fair inside a level (or proportionally fair); compiled.

A level gets what the levels above leave. Inside a level all rates rise together, by their weights, and a flow stops
where a link of its path is full or its own limit is reached. A flow that forwards what another brings
cannot be faster than that one once it has caught up with it. :mod:`testbed.fluid.proportional` has the other fairness.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testbed.fluid.arrays import maxmin as arrays
from testbed.fluid.arrays.maxmin import FULL as FULL
from testbed.fluid.compiled import compiled, compiled_or
from testbed.fluid.proportional import share_in_proportion

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

MAX_MIN: Floats = np.zeros((0, 0))
"""No guesses of waiting times: flows of a level share links max-min fair."""


@compiled
def rise_together(
    growing: Flags,
    ways: Integers,
    parts: Floats,
    bounds: Floats,
    weights: Floats,
    capacity: Floats,
    free: Floats,
    out: Floats,
    users: Floats,
) -> None:
    """Raise ``out`` of the ``growing`` flows by their ``weights`` until a link is full or one reaches its ``bounds``.

    ``ways`` [flows, hops]: link numbers, -1 behind the end; ``parts`` [flows, hops]: the share of the flow that takes
    each. ``free`` [links] falls accordingly; ``users`` [links] is room to add weights up in.
    """
    users[:] = 0.0
    rise = np.inf
    for flow in range(len(growing)):
        if growing[flow]:
            rise = min(rise, (bounds[flow] - out[flow]) / weights[flow])
            for hop in range(ways.shape[1]):
                if ways[flow, hop] >= 0:
                    users[ways[flow, hop]] += weights[flow] * parts[flow, hop]
    for link in range(len(capacity)):
        if users[link] > 0.0:
            rise = min(rise, free[link] / users[link])
    rise = max(rise, 0.0)
    for link in range(len(capacity)):
        free[link] -= rise * users[link]
    for flow in range(len(growing)):
        if growing[flow]:
            out[flow] += rise * weights[flow]


@compiled
def stop_the_full(growing: Flags, ways: Integers, bounds: Floats, capacity: Floats, free: Floats, out: Floats) -> int:
    """Stop the growth of flows that reach their bound or a full link; return how many stop."""
    stopped = 0
    for flow in range(len(growing)):
        if growing[flow]:
            stops = out[flow] >= bounds[flow] * (1.0 - FULL)
            for link in ways[flow]:
                if link >= 0 and free[link] <= FULL * capacity[link]:
                    stops = True
            if stops:
                growing[flow] = False
                stopped += 1
    return stopped


@compiled
def stop_followers(growing: Flags, waiting: Flags, after: Integers, out: Floats) -> int:
    """Let flows grow no more whose leader does not; return how many that are. What they follow has the same rate.

    Leaders that are ``waiting`` for their level have no rate yet.
    """
    stopped, again = 0, True
    while again:
        again = False
        for flow in range(len(growing)):
            leader = after[flow]
            if not growing[flow] or leader < 0 or growing[leader] or waiting[leader]:
                continue
            if out[flow] >= out[leader] * (1.0 - FULL):
                growing[flow] = False
                stopped += 1
                again = True
    return stopped


@compiled_or(arrays.fill)
def fill(
    sending: Flags,
    levels: Integers,
    ways: Integers,
    parts: Floats,
    limits: Floats,
    weights: Floats,
    after: Integers,
    capacity: Floats,
    out: Floats,
    guesses_s: Floats,
) -> None:
    """Write into ``out`` [flows] the rates of the flows that are ``sending``, 0 for the others; units of ``capacity``.

    ``levels`` [flows], smallest first; ``limits`` [flows] may be infinite where a way has a link; flows of a level
    share links in proportion to their ``weights`` [flows], above 0; ``after`` [flows] names the leader that a flow has
    caught up with, -1 for none. ``parts`` [flows, hops]: see :func:`rise_together`.

    ``guesses_s`` [levels, links]: where it has rows, flows of a level, each on one path, share links as
    :func:`share_in_proportion` does, which keeps its waiting times in the row of the level, counted from the first that
    has flows, or in the last row.
    """
    free = capacity.copy()
    users = np.zeros(len(capacity))
    growing = np.zeros(len(sending), np.bool_)
    waiting = sending.copy()
    bounds = limits.copy()
    out[:] = 0.0
    rank = -1
    while True:
        level = np.int64(2**62)
        for flow in range(len(sending)):
            if waiting[flow] and levels[flow] < level:
                level = levels[flow]
        left = 0
        for flow in range(len(sending)):
            growing[flow] = waiting[flow] and levels[flow] == level
            if growing[flow]:
                left += 1
                waiting[flow] = False
        if left == 0:
            return
        rank += 1
        for flow in range(len(sending)):
            leader = after[flow]
            if growing[flow] and leader >= 0 and not growing[leader] and not waiting[leader]:
                bounds[flow] = min(bounds[flow], out[leader])
        if len(guesses_s) > 0:
            guess_s = guesses_s[min(rank, len(guesses_s) - 1)]
            share_in_proportion(growing, ways, bounds, weights, after, capacity, free, guess_s, out)
            growing[:] = False
            left = 0
        while left > 0:
            rise_together(growing, ways, parts, bounds, weights, capacity, free, out, users)
            left -= stop_the_full(growing, ways, bounds, capacity, free, out)
            left -= stop_followers(growing, waiting, after, out)


@compiled_or(arrays.follow)
def follow(sending: Flags, after: Integers, limits: Floats, out: Floats) -> bool:
    """Lower flows to the rate of a leader (``after`` [flows], -1: none) at a lower level; return whether one was.

    Their ``limits`` are lowered with them.
    """
    lowered = False
    again = True
    while again:
        again = False
        for flow in range(len(sending)):
            if sending[flow] and after[flow] >= 0:
                first = out[after[flow]]
                if out[flow] > first * (1.0 + FULL):
                    out[flow] = first
                    limits[flow] = first
                    lowered = again = True
    return lowered


@compiled
def rates(
    sending: Flags,
    levels: Integers,
    ways: Integers,
    parts: Floats,
    limits: Floats,
    weights: Floats,
    after: Integers,
    capacity: Floats,
    out: Floats,
    guesses_s: Floats,
) -> None:
    """Write into ``out`` the rates of all flows; ``after`` names for those that have caught up whom they follow.

    The other arguments are those of :func:`fill`. Leaders and followers of one level rise together. Where a leader is
    at a lower level, what its follower leaves unused goes to others in a new filling, at most once for each flow.
    """
    bounded = limits.copy()
    for _ in range(len(sending) + 1):
        fill(sending, levels, ways, parts, bounded, weights, after, capacity, out, guesses_s)
        if not follow(sending, after, bounded, out):
            return
