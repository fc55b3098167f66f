"""Contention of a part of the cluster as arrays: jobs by rank, edges from the higher to the lower of two."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ContentionGraph:
    """Jobs 0 .. ``count`` - 1, highest priority first; edge ``e`` goes from ``higher[e]`` down to ``lower[e]``.

    Edges are in ascending order of ``higher``; ``weight`` is the intensity of the higher job.
    """

    count: int
    higher: Numbers
    lower: Numbers
    weight: Floats

    @classmethod
    def among(
        cls, order: Sequence[str], beside: Callable[[str], Set[str]], intensities: Sequence[float]
    ) -> ContentionGraph:
        """The graph of ``order``, highest priority first; ``beside``: the jobs of it that share links with one."""
        rank = {job: place for place, job in enumerate(order)}
        neighbours = [beside(job) for job in order]
        sizes = np.fromiter(map(len, neighbours), np.intp, len(order))
        others = np.fromiter(map(rank.__getitem__, chain.from_iterable(neighbours)), np.intp, int(sizes.sum()))
        own = np.repeat(np.arange(len(order)), sizes)
        down = own < others
        higher = own[down]
        return cls(len(order), higher, others[down], np.asarray(intensities, float)[higher])

    @cached_property
    def total(self) -> float:
        """The weight of all edges."""
        return float(self.weight.sum())

    @cached_property
    def depth(self) -> Numbers:
        """Job -> number of edges of the longest chain of contention that ends at it: 0 for those at the top."""
        depth = np.zeros(self.count, np.intp)
        ends = np.searchsorted(self.higher, np.arange(self.count + 1)).tolist()
        for job in range(self.count):
            below = self.lower[ends[job] : ends[job + 1]]
            depth[below] = np.maximum(depth[below], depth[job] + 1)
        return depth

    def cut(self, levels: Numbers) -> float:
        """The weight of the edges between different ``levels`` (job -> level)."""
        return float(self.weight[levels[self.higher] != levels[self.lower]].sum())

    def valid(self, levels: Numbers) -> bool:
        """Whether no job has a lower level than one below it: whether no edge points upwards."""
        return bool((levels[self.higher] <= levels[self.lower]).all())
