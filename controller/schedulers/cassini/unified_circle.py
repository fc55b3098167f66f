"""CASSINI's unified circle (NSDI 2024, section 3): jobs on one link, and how to turn them against each other.

A job's demand is rolled round a circle as often as its period fits into the perimeter, the least
common multiple of all periods on the link. Turning a job is delaying it. The circle is cut into bins;
turns are whole bins, so that the score of a turn is a sum over bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd, lcm
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAME: Final = 1e-9
"""Scores that differ by no more than this are equal."""
REMEMBERED: Final = 16_384
"""Circles whose best turns are kept: a few hundred bytes each."""
MOST_BINS: Final = 10_000
PASSES: Final = 20
"""Rounds of coordinate descent at most; it ends as soon as a round gains nothing, mostly after two."""


@dataclass(frozen=True, slots=True)
class OnCircle:
    """A job on a link: ``copies`` of its period make the perimeter.

    ``arcs``: (begin, end, demand), begin and end as shares of its period from 0 to 1, demand as a share
    of the link's capacity. ``start``: where it is without a shift, as a share of its period.
    """

    copies: int
    arcs: tuple[tuple[float, float, float], ...]
    start: float = 0.0


@dataclass(frozen=True, slots=True)
class Turned:
    """The best turns found (shares of each job's own period, 0 to below 1), their score, and that without shifts."""

    turns: tuple[float, ...]
    score: float
    unshifted: float


@dataclass(frozen=True)
class UnifiedCircle:
    """Jobs on one link; ``bins`` is how many the shortest period has at least (fewer where there are too many copies).

    The number of bins of the whole circle is a multiple of all copies where that is possible: then all
    periods are whole numbers of bins, and turns are exact. Copies without a common divisor make the
    perimeter the least common multiple of the periods.
    """

    jobs: tuple[OnCircle, ...]
    bins: int

    @cached_property
    def size(self) -> int:
        """Bins of the whole circle: |A| of the score."""
        wanted = self.bins * max(job.copies for job in self.jobs)
        whole = lcm(*(job.copies for job in self.jobs))
        fitting = whole * -(-wanted // whole)
        return fitting if fitting <= MOST_BINS else min(wanted, MOST_BINS)

    @cached_property
    def tables(self) -> tuple[Floats, ...]:
        """For every job: its mean demand in each bin of its own period."""
        return tuple(_mean_demand(job, max(1, round(self.size / job.copies))) for job in self.jobs)

    def demand(self, job: int, turns: NDArray[np.int64]) -> Floats:
        """Demand of ``job`` for each of ``turns`` (in its own bins): len(turns) rows of one column per bin."""
        table, copies = self.tables[job], self.jobs[job].copies
        twice = np.concatenate((table, table))  # one way round is enough to look back by any turn
        back = len(table) - turns % len(table)
        if copies * len(table) == self.size:
            return np.tile(sliding_window_view(twice, len(table))[back], copies)
        middles = 2 * np.arange(self.size, dtype=np.int64) + 1
        at = middles * (copies * len(table)) // (2 * self.size)
        return np.asarray(twice[(at % len(table))[None, :] + back[:, None]])

    def total(self, turns: Sequence[int], jobs: Sequence[int]) -> Floats:
        """Demand of ``jobs`` together in every bin."""
        rows = (self.demand(job, np.array([turns[job]]))[0] for job in jobs)
        return sum(rows, np.zeros(self.size))

    def score(self, turns: Sequence[int]) -> float:
        """1 - (demand above capacity, summed over bins) / (bins x capacity): 1 fits, below 0 is possible."""
        return float(_scores(self.total(turns, range(len(self.jobs)))[None, :])[0])

    def starts(self) -> list[int]:
        """The turns of jobs that are not shifted."""
        return [round(job.start * len(table)) % len(table) for job, table in zip(self.jobs, self.tables, strict=True)]

    def candidates(self, job: int, others: Sequence[int]) -> NDArray[np.int64]:
        """Turns of ``job`` that differ to ``others``: the score repeats with their common period. At most ``bins``."""
        own, rest = self.jobs[job].copies, gcd(*(self.jobs[other].copies for other in others))
        repeats = max(1, -(-len(self.tables[job]) * own // lcm(own, rest)))
        return np.arange(0, repeats, -(-repeats // self.bins), dtype=np.int64)

    def scores_of(self, job: int, others: Sequence[int], turns: Sequence[int]) -> tuple[NDArray[np.int64], Floats]:
        """The turns that ``job`` can make against ``others``, and the score of each."""
        candidates = self.candidates(job, others)
        demand = self.demand(job, candidates)
        demand += self.total(turns, others)
        return candidates, _scores(demand)


@lru_cache(maxsize=REMEMBERED)
def turned(jobs: tuple[OnCircle, ...], bins: int) -> Turned:
    """Return :func:`best_turns` of ``jobs``; cached, as the same jobs recur at every decision."""
    return best_turns(UnifiedCircle(jobs, bins))


def best_turns(circle: UnifiedCircle) -> Turned:
    """Return the best turns: all are tried for two jobs, coordinate descent finds them for more.

    The first job stays where it is. Each other job is placed in turn against those before it, at the
    first of its best turns; then, from there and from no shift, one job after the other is turned
    against all others until nothing is gained. Last, every job goes to the middle of its best turns,
    where it is furthest from contention. If no turn beats no shift, nothing is turned.
    """
    starts = circle.starts()
    unshifted = circle.score(starts)
    found = [_placed(circle, starts)]
    if len(circle.jobs) > 2:
        found = [_descended(circle, turns) for turns in (found[0], starts)]
    turns = max(found, key=circle.score)  # the first of equals
    if circle.score(turns) <= unshifted + SAME:
        return Turned(_shares(circle, starts), unshifted, unshifted)
    turns = _centred(circle, turns)
    return Turned(_shares(circle, turns), circle.score(turns), unshifted)


def _placed(circle: UnifiedCircle, starts: Sequence[int]) -> list[int]:
    turns = list(starts)
    for job in range(1, len(turns)):
        candidates, scores = circle.scores_of(job, range(job), turns)
        turns[job] = int(candidates[_best(scores)[0]])
    return turns


def _descended(circle: UnifiedCircle, turns: Sequence[int]) -> list[int]:
    turns, reached = list(turns), circle.score(turns)
    for _ in range(PASSES):
        before = reached
        for job in range(1, len(turns)):
            candidates, scores = circle.scores_of(job, _others(circle, job), turns)
            best = int(_best(scores)[0])
            if scores[best] > reached + SAME:
                turns[job], reached = int(candidates[best]), float(scores[best])
        if reached <= before + SAME:
            break
    return turns


def _centred(circle: UnifiedCircle, turns: Sequence[int]) -> list[int]:
    turns = list(turns)
    for job in range(1, len(turns)):
        reached = circle.score(turns)
        candidates, scores = circle.scores_of(job, _others(circle, job), turns)
        good = scores >= reached - SAME
        if good.any() and not good.all():
            turns[job] = int(candidates[_middle_of_longest_run(good)])
    return turns


def _others(circle: UnifiedCircle, job: int) -> list[int]:
    return [other for other in range(len(circle.jobs)) if other != job]


def _best(scores: Floats) -> NDArray[np.int64]:
    """Indices of the best scores, equal ones in order."""
    return np.flatnonzero(scores >= scores.max() - SAME)


def _middle_of_longest_run(good: NDArray[np.bool_]) -> int:
    """The middle index of the longest run of true values on a circle that has a false one; the first of equals."""
    first = int(np.flatnonzero(~good)[0])
    padded = np.concatenate((np.roll(good, -first), [False])).astype(np.int8)
    edges = np.diff(padded)
    begins, ends = np.flatnonzero(edges == 1) + 1, np.flatnonzero(edges == -1) + 1
    longest = int(np.argmax(ends - begins))
    return (first + int(begins[longest] + ends[longest] - 1) // 2) % len(good)


def _scores(demand: Floats) -> Floats:
    """The score of each row of ``demand``, which is used up."""
    demand -= 1.0
    np.maximum(demand, 0.0, out=demand)
    return np.asarray(1.0 - demand.mean(axis=1))


def _shares(circle: UnifiedCircle, turns: Sequence[int]) -> tuple[float, ...]:
    return tuple(turn / len(table) for turn, table in zip(turns, circle.tables, strict=True))


def _mean_demand(job: OnCircle, bins: int) -> Floats:
    """The mean demand in each of ``bins`` bins of the period."""
    edges = np.arange(bins + 1) / bins
    total = np.zeros(bins + 1)
    for begin, end, demand in job.arcs:
        total += demand * np.clip(edges - begin, 0.0, end - begin)
    return np.asarray(np.diff(total) * bins)
