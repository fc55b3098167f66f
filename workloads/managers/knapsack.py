"""The multiple-choice knapsack: at most one item of each group (Lyra section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def choose(capacity: int, groups: Mapping[str, Sequence[float]]) -> dict[str, int]:
    """Return group -> how many units it gets, so that the values add up to most.

    ``groups``: group -> value of 1, 2, .. units. A group of which nothing is taken gets 0. Of equal sums that one is
    taken in which earlier groups get less. Time grows with capacity times the number of items.
    """
    room = max(0, capacity)
    best = [0.0] * (room + 1)
    taken: list[list[int]] = []
    for values in groups.values():
        after, chosen = best.copy(), [0] * (room + 1)
        for space in range(room + 1):
            for units, value in enumerate(values[:space], start=1):
                if best[space - units] + value > after[space]:
                    after[space], chosen[space] = best[space - units] + value, units
        best = after
        taken.append(chosen)
    found: dict[str, int] = {}
    for name, chosen in zip(reversed(list(groups)), reversed(taken), strict=True):
        found[name] = chosen[room]
        room -= chosen[room]
    return {name: found[name] for name in groups}
