"""Priority compression of Crux (section 4.3, appendix B): many priorities onto K levels.

A contention DAG has an edge from the higher to the lower of two jobs that share a link, weighing
the intensity of the higher one. Jobs on one level contend at random, so the weight of edges
inside a level is the loss; K levels are a K-cut that no edge crosses upwards. For one topological
order the best cut into consecutive pieces is exact by dynamic programming; several orders are tried. Random
ones that are drawn breadth first keep jobs of equal depth together: with hundreds of jobs they cut far more than those
that pick any ready job, which are tried beside them in small parts. The orders by priority and by depth are tried, too.

Jobs that no chain of contention connects do not affect each other, so every connected part is cut
by itself; one whose longest chain has no more than K jobs loses nothing and needs no sampling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import numpy.typing as npt

from controller.schedulers.common.link_sharing import LinkSharing
from controller.schedulers.crux.levels.cuts import best_cuts

Edges = Mapping[tuple[str, str], float]
"""(higher job, lower job) -> intensity of the higher."""

ORDERS = 10
"""Random topological orders tried: m of the paper."""
_FEW = 100
"""Up to so many jobs in a part, as many orders that pick any ready job are tried, too."""

_Floats = npt.NDArray[np.float64]
_CELLS = 2_000_000
"""Matrix cells handled at once: bounds the memory for large parts."""


def contention_edges(
    order: Sequence[str], links: Mapping[str, frozenset[str]], intensity: Mapping[str, float]
) -> dict[tuple[str, str], float]:
    """Return the contention DAG of the jobs in ``order`` (highest priority first); ``links`` are what each uses."""
    number: dict[str, int] = {}
    users = LinkSharing()
    for job in order:
        users.put(job, {number.setdefault(link, len(number)) for link in links[job]})
    return contention_edges_among(order, users, intensity)


def contention_edges_among(
    order: Sequence[str], users: LinkSharing, intensity: Mapping[str, float]
) -> dict[tuple[str, str], float]:
    """As :func:`contention_edges`, with the jobs that share a link taken from ``users``."""
    rank = {job: place for place, job in enumerate(order)}
    edges: dict[tuple[str, str], float] = {}
    for place, higher in enumerate(order):
        weight = intensity[higher]
        below = sorted(other for job in users.beside(higher) if (other := rank.get(job, -1)) > place)
        edges.update(((higher, order[other]), weight) for other in below)
    return edges


def contending(order: Sequence[str], edges: Edges) -> tuple[str, ...]:
    """Return the jobs of ``order`` that share a link with another one."""
    touched = {job for edge in edges for job in edge}
    return tuple(job for job in order if job in touched)


def compress(jobs: Sequence[str], edges: Edges, levels: int, seed: int = 1) -> dict[str, int]:
    """Return job -> level (0 highest .. ``levels`` - 1): part by part the heaviest cut of the orders tried.

    Of jobs that share a link the higher never gets a lower level. Used levels are 0, 1, 2 ...
    without gaps. ``ValueError`` if ``levels`` is below 1, or if ``edges`` form a cycle.
    """
    if levels < 1:
        raise ValueError(f"levels must be at least 1, not {levels}")
    found: dict[str, int] = {}
    for part, inner in _connected_parts(jobs, edges):
        depth = longest_chains(part, inner)
        deepest = max(depth.values())
        found |= depth if deepest < levels else _sampled(part, inner, levels, seed)
    return {job: found[job] for job in jobs}


def _sampled(jobs: Sequence[str], edges: Edges, levels: int, seed: int) -> dict[str, int]:
    """The heaviest cut of the orders of a connected part; the first one on a tie."""
    number = {job: place for place, job in enumerate(jobs)}
    weights = _matrix(jobs, edges)
    orders = np.array([[number[job] for job in order] for order in orders_tried(jobs, edges, seed)], np.intp)
    at_once = max(1, _CELLS // (len(jobs) + 1) ** 2)
    best_weight, best = -1.0, np.zeros(len(jobs), np.intp)
    for first in range(0, len(orders), at_once):
        chosen = orders[first : first + at_once]
        values, groups = best_cuts(weights[chosen[:, :, None], chosen[:, None, :]], levels)
        place = int(values.argmax())
        if values[place] > best_weight:
            best_weight = float(values[place])
            best[chosen[place]] = groups[place]
    _, dense = np.unique(best, return_inverse=True)
    return dict(zip(jobs, dense.tolist(), strict=True))


def orders_tried(jobs: Sequence[str], edges: Edges, seed: int) -> list[list[str]]:
    """Return topological orders of ``jobs``: as they stand if that is one (by priority), by depth, and random ones."""
    random, depth = Random(seed), longest_chains(jobs, edges)
    place = {job: number for number, job in enumerate(jobs)}
    found = [sorted(jobs, key=lambda job: depth[job])]
    if all(place[higher] < place[lower] for higher, lower in edges):
        found.append(list(jobs))
    found += [breadth_first_order(jobs, edges, random) for _ in range(ORDERS)]
    if len(jobs) <= _FEW:
        found += [random_topological_order(jobs, edges, random) for _ in range(ORDERS)]
    return found


def _connected_parts(jobs: Sequence[str], edges: Edges) -> list[tuple[list[str], dict[tuple[str, str], float]]]:
    """The jobs that contention joins, directly or through others, with their edges; in the order of ``jobs``."""
    part_of = {job: job for job in jobs}

    def part(job: str) -> str:
        while part_of[job] != job:
            part_of[job] = job = part_of[part_of[job]]
        return job

    for higher, lower in edges:
        part_of[part(lower)] = part(higher)
    members: dict[str, tuple[list[str], dict[tuple[str, str], float]]] = {}
    for job in jobs:
        members.setdefault(part(job), ([], {}))[0].append(job)
    for edge, weight in edges.items():
        members[part(edge[0])][1][edge] = weight
    return list(members.values())


def longest_chains(jobs: Sequence[str], edges: Edges) -> dict[str, int]:
    """Return job -> number of edges of the longest chain of contention that ends at it: 0 for those at the top."""
    depth = dict.fromkeys(jobs, 0)
    below = _below(jobs, edges)
    for job in random_topological_order(jobs, edges, Random(0)):
        for lower in below[job]:
            depth[lower] = max(depth[lower], depth[job] + 1)
    return depth


def random_topological_order(jobs: Sequence[str], edges: Edges, random: Random) -> list[str]:
    """Return ``jobs`` so that every edge points forward, each next one drawn from those that are ready."""
    below, waiting, ready = _readiness(jobs, edges)
    order: list[str] = []
    while ready:
        job = ready.pop(int(random.random() * len(ready)))
        order.append(job)
        for lower in below[job]:
            waiting[lower] -= 1
            if waiting[lower] == 0:
                ready.append(lower)
    if len(order) < len(waiting):
        raise ValueError("the edges form a cycle")
    return order


def breadth_first_order(jobs: Sequence[str], edges: Edges, random: Random) -> list[str]:
    """Return ``jobs`` so that every edge points forward, in rounds: those that the round before made ready, shuffled.

    ``edges`` form no cycle.
    """
    below, waiting, ready = _readiness(jobs, edges)
    order: list[str] = []
    while ready:
        random.shuffle(ready)
        order += ready
        before, ready = ready, []
        for lower in (lower for job in before for lower in below[job]):
            waiting[lower] -= 1
            if waiting[lower] == 0:
                ready.append(lower)
    return order


def _readiness(jobs: Sequence[str], edges: Edges) -> tuple[dict[str, list[str]], dict[str, int], list[str]]:
    """Job -> those below it; job -> how many are above it; the jobs that nothing is above."""
    waiting = dict.fromkeys(jobs, 0)
    for _, lower in edges:
        waiting[lower] += 1
    return _below(jobs, edges), waiting, [job for job in jobs if waiting[job] == 0]


def _below(jobs: Sequence[str], edges: Edges) -> dict[str, list[str]]:
    below: dict[str, list[str]] = {job: [] for job in jobs}
    for higher, lower in edges:
        below[higher].append(lower)
    return below


def best_cut(order: Sequence[str], edges: Edges, levels: int) -> dict[str, int]:
    """Return job -> group of the heaviest cut of ``order`` into at most ``levels`` consecutive pieces (Eq. 4)."""
    _, groups = best_cuts(_matrix(order, edges)[None], levels)
    return dict(zip(order, groups[0].tolist(), strict=True))


def _matrix(jobs: Sequence[str], edges: Edges) -> _Floats:
    """Weights of the edges, row: higher, column: lower."""
    number = {job: place for place, job in enumerate(jobs)}
    weights = np.zeros((len(jobs), len(jobs)))
    if edges:
        rows, columns = zip(*((number[higher], number[lower]) for higher, lower in edges), strict=True)
        weights[rows, columns] = list(edges.values())
    return weights


def first_levels_own(order: Sequence[str], levels: int) -> dict[str, int]:
    """Return levels without compression: the first ``levels`` - 1 jobs get their own, the rest share the last."""
    return {job: min(rank, levels - 1) for rank, job in enumerate(order)}
