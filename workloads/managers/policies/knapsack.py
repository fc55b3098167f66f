"""The multiple-choice knapsack: at most one item of each group (Lyra section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt


def choose(capacity: int, groups: Mapping[str, Sequence[float]]) -> dict[str, int]:
    """Return group -> how many units it gets, so that the values add up to most.

    ``groups``: group -> value of 1, 2, .. units. A group of which nothing is taken gets 0. Of equal sums that one is
    taken in which earlier groups get less. Time grows with capacity times the number of items.
    """
    room = max(0, capacity)
    best = np.zeros(room + 1)
    taken: list[npt.NDArray[np.intp]] = []
    for values in groups.values():
        after, chosen = best.copy(), np.zeros(room + 1, np.intp)
        for units, value in enumerate(values[:room], start=1):
            tried = best[:-units] + value  # with room for 0, 1, .. beside these units
            better = tried > after[units:]
            after[units:][better] = tried[better]
            chosen[units:][better] = units
        best = after
        taken.append(chosen)
    found: dict[str, int] = {}
    for name, chosen in zip(reversed(list(groups)), reversed(taken), strict=True):
        found[name] = int(chosen[room])
        room -= found[name]
    return {name: found[name] for name in groups}
