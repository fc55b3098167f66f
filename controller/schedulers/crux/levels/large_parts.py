"""Priority compression of parts with thousands of jobs: sparse weights, and cuts found from coarse to fine.

The same orders as in :mod:`controller.schedulers.crux.compression` and the same dynamic programme, but neither needs
memory for pairs of jobs. Rounds of a breadth-first order are the depths of the jobs, so that an order is one sort. An
order is cut in two steps: between blocks of jobs, then between single jobs around the cuts found, as long as that cuts
more. The weights between blocks are summed up edge by edge.
"""

from __future__ import annotations

from random import Random
from typing import Final

import numpy as np

from controller.schedulers.crux.levels.contention_graph import ContentionGraph, Floats, Numbers
from controller.schedulers.crux.levels.cuts import best_cuts

LARGE: Final = 500
"""Parts with more jobs are compressed here."""
ORDERS: Final = 10
"""Random topological orders tried: m of the paper."""
_BLOCKS: Final = 256
"""Pieces between which an order may be cut at first."""
_REFINED: Final = 3
"""So many orders with the heaviest coarse cuts are cut to the job."""
_ROUNDS: Final = 4
"""Refinements of an order at most."""


def compress_graph(graph: ContentionGraph, levels: int, seed: int) -> Numbers:
    """Return job -> level, 0 highest: the heaviest cut of the orders tried; levels without gaps.

    A graph whose longest chain has at most ``levels`` jobs loses nothing.
    """
    if graph.depth.max(initial=0) < levels:
        return graph.depth
    coarse = []
    for order in _orders(graph, seed):
        place = np.empty(graph.count, np.intp)
        place[order] = np.arange(graph.count)
        ends = np.unique(np.linspace(0, graph.count, min(_BLOCKS, graph.count) + 1).astype(np.intp))
        value, cuts = _cut_between(graph, place, ends, levels)
        coarse.append((value, place, cuts))
    coarse.sort(key=lambda found: -found[0])  # stable: the first of equal ones
    best_value, best = -1.0, np.zeros(graph.count, np.intp)
    for value, place, cuts in coarse[:_REFINED]:
        value, cuts = _refined(graph, place, value, cuts, levels)
        if value > best_value:
            best_value, best = value, np.searchsorted(cuts, place, side="right")
    _, dense = np.unique(best, return_inverse=True)
    return dense


def _orders(graph: ContentionGraph, seed: int) -> list[Numbers]:
    """Topological orders: by depth, by priority, and breadth-first ones with each round shuffled."""
    random = Random(seed)
    found = [np.argsort(graph.depth, kind="stable"), np.arange(graph.count)]
    for _ in range(ORDERS):
        drawn = np.array([random.random() for _ in range(graph.count)])
        found.append(np.lexsort((drawn, graph.depth)))
    return found


def _refined(graph: ContentionGraph, place: Numbers, value: float, cuts: Numbers, levels: int) -> tuple[float, Numbers]:
    """The cut of an order and where it lies, moved job by job as long as that cuts more."""
    width = -(-graph.count // _BLOCKS)
    coarse = np.linspace(0, graph.count, _BLOCKS // 2 + 1).astype(np.intp)
    for _ in range(_ROUNDS):
        near = (cuts[:, None] + np.arange(-width, width + 1)).ravel()
        ends = np.unique(np.concatenate((coarse, near[(near > 0) & (near < graph.count)])))
        again, moved = _cut_between(graph, place, ends, levels)
        if again <= value * (1 + 1e-12):
            break
        value, cuts = again, moved
    return value, cuts


def _cut_between(graph: ContentionGraph, place: Numbers, ends: Numbers, levels: int) -> tuple[float, Numbers]:
    """The heaviest cut of an order (job -> place) at some of ``ends`` (0 .. count): its weight, and where it lies."""
    blocks = len(ends) - 1
    block = np.searchsorted(ends, place, side="right") - 1
    pairs = block[graph.higher] * blocks + block[graph.lower]
    between: Floats = np.bincount(pairs, graph.weight, blocks * blocks).astype(float)
    values, groups = best_cuts(between.reshape(1, blocks, blocks), levels)
    starts = np.searchsorted(groups[0], np.arange(1, levels))
    return float(values[0]), ends[starts]
