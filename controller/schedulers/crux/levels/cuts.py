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
    between = _weights_across(weights)
    value = np.zeros((tries, count + 1))
    splits: list[npt.NDArray[np.intp]] = []
    for _ in range(1, levels):
        total = value[:, :, None] + between
        split = total.argmax(axis=1)
        value = np.take_along_axis(total, split[:, None, :], axis=1)[:, 0]
        splits.append(split)
    groups = np.zeros((tries, count), np.intp)
    for attempt in range(tries):
        end = count
        for level in range(levels - 1, 0, -1):
            start = int(splits[level - 1][attempt, end])
            groups[attempt, start:end] = level
            end = start
    return value[:, count], groups


def _weights_across(weights: _Floats) -> _Floats:
    """``result[t, j, i]``: weight of edges from the first ``j`` places to places ``j + 1`` .. ``i`` of order ``t``.

    For ``i`` < ``j`` it is minus infinity: a piece does not end before it begins.
    """
    tries, count, _ = weights.shape
    prefix = np.zeros((tries, count + 1, count + 1))
    np.cumsum(weights, axis=1, out=prefix[:, 1:, 1:])
    np.cumsum(prefix[:, 1:, 1:], axis=2, out=prefix[:, 1:, 1:])
    own = np.arange(count + 1)
    across = prefix - prefix[:, own, own][:, :, None]
    across[:, np.tri(count + 1, k=-1, dtype=bool)] = -np.inf
    return across
