"""The iterations of a real program that reports none, from the bytes that its connections carry over time. Pure.

A training job sends in bursts. Their period comes from the Fourier transform that online profiles use as well (Crux,
section 5); from it follow the bytes of an iteration. An iteration ends with the burst that brings its bytes: when about
so many have gone and nothing more follows, or, in a program that never pauses, when exactly so many have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from controller.schedulers.crux.online_profile import iteration_length

LEARN_S: Final = 3.0
"""Seconds over which the period is looked for first; where none is found, over half as many more, and so on."""
NEARLY: Final = 0.9
"""Share of an iteration's bytes after which a pause is its end."""
PAUSE_S: Final = 0.06
"""Without a byte for so long a burst is over."""
BIN_S: Final = 0.02
QUIET: Final = 3
"""Bins on either side of a cut between periods that should be without traffic."""
FEWEST_PERIODS: Final = 3
"""As many must have been seen."""
ALIKE: Final = 0.2
"""Periods of the same program carry the same bytes, but for this share."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An iteration on the clock of the samples: where it began, its first and its last byte."""

    start: float
    ready: float
    end: float


class TrafficIterations:
    """Finds iterations in samples of (time, bytes carried so far); :meth:`take` returns those that have ended."""

    def __init__(self, began: float) -> None:
        self._samples: list[tuple[float, int]] = [(began, 0)]
        self._learn_s = LEARN_S
        self._size: float | None = None
        self._next = 0
        self._first = 0
        self._start = began
        self._ready: float | None = None
        self._last = began
        self._before = 0
        self._whole: tuple[float, int] | None = None

    @property
    def bytes_per_iteration(self) -> float | None:
        """What an iteration carries, once that is known."""
        return self._size

    def take(self, time_s: float, carried: int) -> list[Seen]:
        """Add a sample; return the iterations that have ended since the last call, in order."""
        self._samples.append((time_s, carried))
        if self._size is None and not self._learn():
            return []
        return list(self._ended())

    def _learn(self) -> bool:
        begun, until = self._samples[0][0], self._samples[-1][0]
        if until - begun < self._learn_s:
            return False
        bins = [0.0] * (int((until - begun) / BIN_S) + 1)
        for (_, before), (when, after) in zip(self._samples, self._samples[1:], strict=False):
            bins[int((when - begun) / BIN_S)] += after - before
        self._size = _bytes_per_period(bins)
        if self._size is None:
            self._learn_s *= 1.5
        return self._size is not None

    def _ended(self) -> Iterator[Seen]:
        assert self._size is not None
        while self._next < len(self._samples):
            when, carried = self._samples[self._next]
            self._next += 1
            if carried > self._before:
                self._before = carried
                self._ready = when if self._ready is None else self._ready
                self._last = when
            since = carried - self._first
            if self._whole is None and since >= self._size:
                self._whole = when, carried
            if self._ready is None:
                continue
            if since >= NEARLY * self._size and when - self._last >= PAUSE_S:
                yield self._cut(self._ready, self._last, carried)
            elif self._whole is not None and since >= (2 - NEARLY) * self._size:
                yield self._cut(self._ready, *self._whole)
                self._ready = self._start

    def _cut(self, ready: float, end: float, carried: int) -> Seen:
        """End the iteration at ``end``, where ``carried`` bytes had gone; the next begins there."""
        seen = Seen(self._start, ready, end)
        self._start, self._first, self._ready, self._whole = end, carried, None, None
        return seen


def _bytes_per_period(bins: Sequence[float]) -> float | None:
    """Return what a period of ``bins`` carries; None if they do not repeat often enough to tell.

    Of few periods the transform may take a harmonic for the period. Then its periods differ, and those of the period
    itself, a multiple, do not.
    """
    try:
        shortest = iteration_length(bins, BIN_S) / BIN_S
    except ValueError:
        return None
    multiple = 1
    while (count := int(len(bins) / (multiple * shortest))) >= FEWEST_PERIODS:
        edges = _quiet_edges(bins, multiple * shortest)
        count = len(edges) - 1
        if count < FEWEST_PERIODS - 1:
            break
        sums = [sum(bins[begin:end]) for begin, end in pairwise(edges)]
        mean = sum(sums) / count
        if mean > 0 and max(sums) - min(sums) <= ALIKE * mean:
            return mean
        multiple += 1
    return None


def _quiet_edges(bins: Sequence[float], period: float) -> list[int]:
    """Cut ``bins`` into periods where least is sent: inside a burst a small error of the period counts.

    Only the later half: at first connections open and the program warms up.
    """
    around = [sum(bins[max(0, place - QUIET) : place + QUIET]) for place in range(len(bins) + 1)]
    count = int(len(bins) / period)
    choices = []
    for offset in range(int(period)):
        edges = [round(len(bins) - offset - number * period) for number in range(count, -1, -1)]
        choices.append([edge for edge in edges if edge >= 0][-1 - max(FEWEST_PERIODS, count // 2) :])
    return min(choices, key=lambda edges: sum(around[edge] for edge in edges) / len(edges))
