"""How far bars are from the paper's, and whether they come in its order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from statistics import fmean
from typing import Final

SAME: Final = 0.01
"""Bars that the paper has this close to each other may swap."""


def distance_points(paper: float, here: float) -> float:
    """The distance of a bar from the paper's, in points."""
    return 100 * abs(here - paper)


def mean_distance_points(pairs: Iterable[tuple[float, float]]) -> float:
    """The mean distance of (paper's, ours), in points; ``ValueError`` of none."""
    return fmean(distance_points(paper, here) for paper, here in pairs)


def swapped(paper: Mapping[str, float], here: Mapping[str, float]) -> tuple[tuple[str, str], ...]:
    """Pairs (lower, higher) of the paper, more than :data:`SAME` apart, whose lower bar is not the lower one here."""
    in_order = (sorted(pair, key=paper.__getitem__) for pair in combinations(paper, 2))
    return tuple(
        (low, high) for low, high in in_order if paper[high] - paper[low] > SAME + _ROUNDING and here[low] >= here[high]
    )


def said_of_order(paper: Mapping[str, float], here: Mapping[str, float]) -> str:
    """Say in words whether the order is the paper's, and which pairs break it."""
    wrong = swapped(paper, here)
    return "order as published" if not wrong else "not in the paper's order: " + ", ".join(map(" over ".join, wrong))


_ROUNDING: Final = 1e-9
