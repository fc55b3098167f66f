"""Rates of flows as :mod:`testbed.fluid.maxmin` computes them, by operations on arrays: its loops without a compiler.

The operations on each number are the same, in the same order, and so are the numbers, to the last digit.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from testbed.fluid.proportional import share_in_proportion

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

FULL: Final = 1e-9
"""Share of a link's capacity, or of a limit, that counts as rounding."""


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
    """As :func:`testbed.fluid.maxmin.fill`."""
    free, bounds, waiting = capacity.copy(), limits.copy(), sending.copy()
    out[:] = 0.0
    rank = -1
    while (left := np.flatnonzero(waiting)).size:
        rank += 1
        own = left[levels[left] == levels[left].min()]
        growing = np.zeros(len(sending), np.bool_)
        growing[own], waiting[own] = True, False
        leaders = after[own]
        settled = (leaders >= 0) & ~growing[leaders] & ~waiting[leaders]
        bounds[own[settled]] = np.minimum(bounds[own[settled]], out[leaders[settled]])
        if len(guesses_s) > 0:
            guess_s = guesses_s[min(rank, len(guesses_s) - 1)]
            share_in_proportion(growing, ways, bounds, weights, after, capacity, free, guess_s, out)
        else:
            _rise_until_all_stop(own, growing, waiting, ways, parts, bounds, weights, after, capacity, free, out)


def _rise_until_all_stop(
    flows: Integers,
    growing: Flags,
    waiting: Flags,
    ways: Integers,
    parts: Floats,
    bounds: Floats,
    weights: Floats,
    after: Integers,
    capacity: Floats,
    free: Floats,
    out: Floats,
) -> None:
    """Raise ``flows`` together, again and again, and drop those that stop."""
    some_follow = bool((after[flows] >= 0).any())
    while flows.size:
        own, links = weights[flows], ways[flows]
        there = links >= 0
        # In the order of the loops: flow by flow, hop by hop.
        users = np.bincount(links[there], (own[:, None] * parts[flows])[there], len(capacity))
        used = users > 0.0
        own_rise = float(np.min((bounds[flows] - out[flows]) / own))
        rise = max(min(own_rise, float(np.min(free[used] / users[used], initial=np.inf))), 0.0)
        free -= rise * users
        out[flows] += rise * own
        full = free <= FULL * capacity
        stops = (out[flows] >= bounds[flows] * (1.0 - FULL)) | (full[links] & there).any(axis=1)
        growing[flows[stops]] = False
        flows = flows[~stops]
        if some_follow:
            flows = _without_followers(flows, growing, waiting, after, out)


def _without_followers(flows: Integers, growing: Flags, waiting: Flags, after: Integers, out: Floats) -> Integers:
    """Stop those of ``flows`` whose leader has stopped, and return the others."""
    while True:
        leaders = after[flows]
        stops = (leaders >= 0) & ~growing[leaders] & ~waiting[leaders] & (out[flows] >= out[leaders] * (1.0 - FULL))
        if not stops.any():
            return flows
        growing[flows[stops]] = False
        flows = flows[~stops]


def follow(sending: Flags, after: Integers, limits: Floats, out: Floats) -> bool:
    """As :func:`testbed.fluid.maxmin.follow`.

    One flow after the other, for it matters in which order they are lowered; but only if one is too fast at all.
    """
    flows = np.flatnonzero(sending & (after >= 0))
    lowered = False
    while (out[flows] > out[after[flows]] * (1.0 + FULL)).any():
        lowered = True
        for flow in flows.tolist():
            first = out[after[flow]]
            if out[flow] > first * (1.0 + FULL):
                out[flow] = first
                limits[flow] = first
    return lowered
