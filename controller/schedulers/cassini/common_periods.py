"""Periods that divide one perimeter: CASSINI's unified circle needs a small common multiple, real jobs have none.

The paper takes the least common multiple of iteration times. Measured or computed times have no small
one, so they are rounded up here, by at most a given share, to divisors of a common perimeter. A job
keeps its rounded period by waiting out the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

CANDIDATES: Final = 512
"""Perimeters that are compared; those beyond are longer than all of these."""

REMEMBERED: Final = 4096
"""Answers that are kept: the same jobs are asked about again at every decision while nothing else changes."""

_EXACT: Final = 1e-9
"""Periods that differ by no more than this share are the same."""


@dataclass(frozen=True)
class CommonPeriods:
    """``copies``: job -> how often its period fits into the perimeter (seconds)."""

    perimeter_s: float
    copies: Mapping[str, int]

    def period_s(self, job: str) -> float:
        """The rounded period of ``job`` in seconds."""
        return self.perimeter_s / self.copies[job]


def common_periods(alone_s: Mapping[str, float], links: Sequence[Sequence[str]], grid: float) -> CommonPeriods:
    """Return periods no shorter than ``alone_s`` (job -> seconds > 0), longer by at most about ``grid`` (a share).

    ``links``: the jobs of every link that is shared. Half of ``grid`` goes into giving jobs of nearly
    the same length the same period; half into a perimeter that all periods divide. Of the perimeters
    that allow this, the one is taken whose unified circles, over all ``links``, are the shortest in
    sum; it is never longer than (1 + 2 / grid) times the longest period.
    """
    return _found(tuple(alone_s.items()), tuple(map(tuple, links)), grid)


@lru_cache(maxsize=REMEMBERED)
def _found(alone_s: tuple[tuple[str, float], ...], links: tuple[tuple[str, ...], ...], grid: float) -> CommonPeriods:
    merged = _merged(dict(alone_s), grid / 2)
    periods = np.array(sorted(set(merged.values()), reverse=True))
    perimeters = _perimeters(periods, grid / 2)
    copies = _copies(perimeters[:, None], periods[None, :])
    place = {period: index for index, period in enumerate(periods.tolist())}
    groups = sorted({tuple(sorted({place[merged[job]] for job in jobs})) for jobs in links})
    length = sum((perimeters / np.gcd.reduce(copies[:, group], axis=1) for group in groups), np.zeros(len(perimeters)))
    best = int(np.argmin(length.round(9)))
    found = {job: int(copies[best, place[period]]) for job, period in merged.items()}
    return CommonPeriods(float(perimeters[best]), found)


def _merged(alone_s: Mapping[str, float], share: float) -> dict[str, float]:
    """Job -> the longest period of which its own is short by at most ``share``."""
    merged: dict[str, float] = {}
    leader = float("inf")
    for job, period in sorted(alone_s.items(), key=lambda item: -item[1]):
        if leader > period * (1 + share) * (1 + _EXACT):
            leader = period
        merged[job] = leader
    return {job: merged[job] for job in alone_s}


def _perimeters(periods: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """The shortest perimeters that ``periods`` (falling) divide when rounded up by at most ``share``; at least one.

    The shortest of all fits some period without rounding, so multiples of periods are enough. From
    1 / share times the longest period on, every perimeter will do.
    """
    longest = float(periods[0])
    limit = longest * (1 / share + 2)
    found: list[NDArray[np.float64]] = []
    for period in periods.tolist():
        multiples = period * np.arange(np.ceil(longest / period - _EXACT), np.floor(limit / period) + 1)
        rounded = multiples[:, None] / _copies(multiples[:, None], periods[None, :])
        fits = (rounded <= periods * (1 + share) * (1 + _EXACT)).all(axis=1)
        found.append(multiples[fits][:CANDIDATES])
    return np.sort(np.concatenate(found))[:CANDIDATES]


def _copies(perimeters: NDArray[np.float64], periods: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.maximum(1, np.floor(perimeters / periods * (1 + _EXACT))).astype(np.int64)
