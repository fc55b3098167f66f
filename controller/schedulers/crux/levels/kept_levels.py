"""Levels that stay: of a part whose jobs have levels, only those change that must, or whose change cuts more.

A level that changes costs messages in flight their order, and switches their rules. So levels in force stay as long as
no job is served before one of higher priority that it shares a link with, and the edges they cut weigh no less than the
best cut found, up to a stated share. The paper recomputes all levels at every event (section 5) and says nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from heapq import heappop, heappush
from typing import Final

import numpy as np

from controller.schedulers.crux.levels.contention_graph import ContentionGraph, Floats, Numbers

NO_LEVEL: Final = -1
"""In place of the level of a job that has none in force."""
_SWEEPS: Final = 2


class KeptLevels:
    """A contention graph, and the edges at each of its jobs."""

    def __init__(self, graph: ContentionGraph, levels: int) -> None:
        self._graph, self._levels = graph, levels

    @cached_property
    def _sides(self) -> tuple[Numbers, Floats, list[int], list[int]]:
        """Jobs above, job by job, and their intensities; where those of each job end there, and those below it."""
        graph, every = self._graph, np.arange(self._graph.count + 1)
        by_lower = np.argsort(graph.lower, kind="stable")
        ends_above = np.searchsorted(graph.lower[by_lower], every).tolist()
        return graph.higher[by_lower], graph.weight[by_lower], ends_above, np.searchsorted(graph.higher, every).tolist()

    def kept(self, in_force: Numbers, best: Callable[[], Numbers], share: float) -> Numbers:
        """Return job -> level: those ``in_force`` with few changes, or else ``best()``, whose cut is the best found.

        ``in_force``: :data:`NO_LEVEL` for jobs without one. What is returned is valid, and its cut weighs at least
        (1 - ``share``) of that of ``best()``, which is not asked for where no cut could be heavier by more than that.
        """
        if (in_force == NO_LEVEL).all():
            return best()
        graph, close = self._graph, (1 - share) * (1 - 1e-12)
        mended = in_force if self._holds(in_force) else self._mended(in_force)
        cut = graph.cut(mended)
        if cut >= close * graph.total:
            return mended
        found = best()
        enough = close * graph.cut(found)
        if cut < enough:
            mended = self._improved(mended, enough)
        return mended if graph.cut(mended) >= enough else found

    def _holds(self, levels: Numbers) -> bool:
        inside = bool(((levels >= 0) & (levels < self._levels)).all())
        return inside and self._graph.valid(levels)

    def _mended(self, in_force: Numbers) -> Numbers:
        """Levels in force where they can be: a job below others is pushed down, one without a level joins them."""
        found = np.where((in_force >= 0) & (in_force < self._levels), in_force, NO_LEVEL)
        graph = self._graph
        upwards = graph.lower[found[graph.higher] > found[graph.lower]]
        waiting = np.unique(np.concatenate((upwards, np.flatnonzero(found == NO_LEVEL)))).tolist()
        while waiting:  # by rank, which is a heap; all above a job have their final level when its turn comes
            job = heappop(waiting)
            above, _ = self._at_above(job)
            highest, now = int(found[above].max(initial=0)), int(found[job])
            after = max(highest, now) if now != NO_LEVEL else self._joining(job, found, highest)
            if after != now:
                found[job] = after
                _, below = self._at_below(job)
                for lower in below[(found[below] < after) & (found[below] != NO_LEVEL)].tolist():
                    heappush(waiting, lower)
        return found

    def _joining(self, job: int, levels: Numbers, highest: int) -> int:
        """The level for a job without one: not above ``highest``, nor below what it precedes, where it cuts most."""
        _, below = self._at_below(job)
        placed = levels[below]
        lowest = max(highest, int(placed[placed >= 0].min(initial=self._levels - 1)))
        return highest + int(self._lost(job, levels)[highest : lowest + 1].argmin())

    def _lost(self, job: int, levels: Numbers) -> Floats:
        """Level -> weight of the edges of ``job`` to jobs there, which it loses if it has that level, too."""
        above, weights = self._at_above(job)
        own, below = self._at_below(job)
        placed = levels[below]
        lost: Floats = np.bincount(levels[above], weights, self._levels).astype(float)
        return lost + own * np.bincount(placed[placed >= 0], minlength=self._levels)

    def _improved(self, levels: Numbers, enough: float) -> Numbers:
        """``levels`` after one job after the other moved to where it cuts most, until the cut weighs ``enough``."""
        found, cut = levels.copy(), self._graph.cut(levels)
        for _ in range(_SWEEPS):
            moved = False
            for job in range(self._graph.count):
                above, _ = self._at_above(job)
                _, below = self._at_below(job)
                highest, lowest = found[above].max(initial=0), found[below].min(initial=self._levels - 1)
                lost = self._lost(job, found)
                now, better = int(found[job]), int(highest + lost[highest : lowest + 1].argmin())
                if lost[better] < lost[now]:
                    found[job], moved = better, True
                    cut += lost[now] - lost[better]
                    if cut >= enough:
                        return found
            if not moved:
                break
        return found

    def _at_above(self, job: int) -> tuple[Numbers, Floats]:
        """The jobs above ``job``, and their intensities."""
        above, weights, ends, _ = self._sides
        begin, end = ends[job : job + 2]
        return above[begin:end], weights[begin:end]

    def _at_below(self, job: int) -> tuple[float, Numbers]:
        """The intensity of ``job``, and the jobs below it."""
        begin, end = self._sides[3][job : job + 2]
        own = float(self._graph.weight[begin]) if end > begin else 0.0
        return own, self._graph.lower[begin:end]
