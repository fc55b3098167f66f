"""The heaviest cut of an order into consecutive pieces, by dynamic programming (Crux section 4.3, Eq. 4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]


def best_cuts(weights: _Floats, levels: int) -> tuple[_Floats, npt.NDArray[np.intp]]:
    """For each order the heaviest cut into at most ``levels`` pieces, and the piece that each of its places is in.

    ``weights[t, j, i]``: what edges from place ``j`` of order ``t`` to its place ``i`` weigh.
    """
    tries, count, _ = weights.shape
    values, groups = np.zeros(tries), np.zeros((tries, count), np.intp)
    for attempt in range(tries):  # one by one: what an order takes fits into a cache
        values[attempt] = _best_cut(weights[attempt], levels, groups[attempt])
    return values, groups


def _best_cut(weights: _Floats, levels: int, groups: npt.NDArray[np.intp]) -> float:
    """Write into ``groups`` the piece that each place of an order is in; return what the cut weighs."""
    count = len(weights)
    between, every = _weights_across(weights), np.arange(count + 1)
    value = np.zeros(count + 1)
    splits: list[npt.NDArray[np.intp]] = []
    for _ in range(1, levels):
        total = between + value
        split = total.argmax(axis=1)
        value = total[every, split]
        splits.append(split)
    end = count
    for level in range(levels - 1, 0, -1):
        start = int(splits[level - 1][end])
        groups[start:end] = level
        end = start
    return float(value[count])


def _weights_across(weights: _Floats) -> _Floats:
    """``result[i, j]``: weight of edges from the first ``j`` places to places ``j + 1`` .. ``i`` of an order.

    For ``i`` < ``j`` it is minus infinity: a piece does not end before it begins.
    """
    count = len(weights)
    prefix = np.zeros((count + 1, count + 1))
    np.cumsum(weights, axis=0, out=prefix[1:, 1:])
    np.cumsum(prefix[1:, 1:], axis=1, out=prefix[1:, 1:])
    across = np.ascontiguousarray((prefix - prefix.diagonal()[:, None]).T)
    across[np.tri(count + 1, k=-1, dtype=bool).T] = -np.inf
    return across
