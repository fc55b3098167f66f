"""Lina's experts (Li et al., ATC 2023, section 5): devices in proportion to popularity, unpopular ones share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction


def devices_of(popularity: Sequence[int], devices: int) -> list[int]:
    """Return devices of each expert: in proportion to ``popularity``, by largest remainder; 0 shares with another.

    The first expert wins a tie. ``ValueError`` for no popularity at all, or a negative one.
    """
    whole = sum(popularity)
    if whole <= 0 or min(popularity) < 0 or devices < 1:
        raise ValueError("popularity must be numbers of at least 0, one of them above 0, and devices at least 1")
    exact = [Fraction(devices * each, whole) for each in popularity]
    counts = [int(each) for each in exact]
    order = sorted(range(len(exact)), key=lambda place: (counts[place] - exact[place], place))
    for place in order[: devices - sum(counts)]:
        counts[place] += 1
    return counts


def hosts_of_packed(counts: Sequence[int], popularity: Sequence[int]) -> Mapping[int, int]:
    """Return expert without a device -> the expert whose device it shares: the least busy one per device."""
    load = {place: Fraction(popularity[place], count) for place, count in enumerate(counts) if count}
    found: dict[int, int] = {}
    for place, count in enumerate(counts):
        if count == 0:
            host = min(load, key=lambda each: (load[each], each))
            found[place] = host
            load[host] += popularity[place]
    return found
