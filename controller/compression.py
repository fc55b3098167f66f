"""Priority compression of Crux (section 4.3, appendix B): many priorities onto K levels.

A contention DAG has an edge from the higher to the lower of two jobs that share a link, weighing
the intensity of the higher one. Jobs on one level contend at random, so the weight of edges
inside a level is the loss; K levels are a K-cut that no edge crosses upwards. For one topological
order the best cut into consecutive pieces is exact by dynamic programming; several random orders
are sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random

Edges = Mapping[tuple[str, str], float]
"""(higher job, lower job) -> intensity of the higher."""

ORDERS = 10
"""Random topological orders tried: m of the paper."""


def contention_edges(
    order: Sequence[str], links: Mapping[str, frozenset[str]], intensity: Mapping[str, float]
) -> dict[tuple[str, str], float]:
    """Return the contention DAG of the jobs in ``order`` (highest priority first); ``links`` are what each uses."""
    return {
        (higher, lower): intensity[higher]
        for higher, lower in combinations(order, 2)
        if not links[higher].isdisjoint(links[lower])
    }


def contending(order: Sequence[str], edges: Edges) -> tuple[str, ...]:
    """Return the jobs of ``order`` that share a link with another one."""
    touched = {job for edge in edges for job in edge}
    return tuple(job for job in order if job in touched)


def cut_weight(groups: Mapping[str, int], edges: Edges) -> float:
    """Return the weight of the edges between different groups."""
    return sum(weight for (higher, lower), weight in edges.items() if groups[higher] != groups[lower])


def compress(jobs: Sequence[str], edges: Edges, levels: int, seed: int = 1) -> dict[str, int]:
    """Return job -> level (0 highest .. ``levels`` - 1): the heaviest cut of the sampled orders.

    Of jobs that share a link the higher never gets a lower level. Used levels are 0, 1, 2 ...
    without gaps. ``ValueError`` if ``levels`` is below 1.
    """
    if levels < 1:
        raise ValueError(f"levels must be at least 1, not {levels}")
    random, total = Random(seed), sum(edges.values())
    best_weight, best_groups = -1.0, {job: 0 for job in jobs}
    for _ in range(ORDERS if levels > 1 else 0):
        order = random_topological_order(jobs, edges, random)
        groups = best_cut(order, edges, levels)
        weight = cut_weight(groups, edges)
        if weight > best_weight:
            best_weight, best_groups = weight, groups
        if best_weight >= total:
            break
    dense = {group: level for level, group in enumerate(sorted(set(best_groups.values())))}
    return {job: dense[best_groups[job]] for job in jobs}


def random_topological_order(jobs: Sequence[str], edges: Edges, random: Random) -> list[str]:
    """Return ``jobs`` so that every edge points forward, each next one drawn from those that are ready."""
    waiting = dict.fromkeys(jobs, 0)
    below: dict[str, list[str]] = {job: [] for job in jobs}
    for higher, lower in edges:
        waiting[lower] += 1
        below[higher].append(lower)
    ready = [job for job in jobs if waiting[job] == 0]
    order: list[str] = []
    while ready:
        job = ready.pop(random.randrange(len(ready)))
        order.append(job)
        for lower in below[job]:
            waiting[lower] -= 1
            if waiting[lower] == 0:
                ready.append(lower)
    return order


def best_cut(order: Sequence[str], edges: Edges, levels: int) -> dict[str, int]:
    """Return job -> group of the heaviest cut of ``order`` into at most ``levels`` consecutive pieces (Eq. 4)."""
    count = len(order)
    between = _weights_across(order, edges)
    value = [[0.0] * (levels + 1) for _ in range(count + 1)]
    split = [[0] * (levels + 1) for _ in range(count + 1)]
    for level in range(2, levels + 1):
        for end in range(1, count + 1):
            best, start = -1.0, 0
            # The best split moves only forward with the end: weight between later jobs only adds to later splits.
            for middle in range(split[end - 1][level], end):
                weight = value[middle][level - 1] + between[middle][end]
                if weight > best:
                    best, start = weight, middle
            value[end][level], split[end][level] = best, start
    groups: dict[str, int] = {}
    end = count
    for level in range(levels, 0, -1):
        start = split[end][level] if level > 1 else 0
        groups.update(dict.fromkeys(order[start:end], level - 1))
        end = start
    return groups


def _weights_across(order: Sequence[str], edges: Edges) -> list[list[float]]:
    """``result[j][i]``: weight of edges from the first ``j`` jobs to jobs ``j + 1`` .. ``i`` of ``order``."""
    count = len(order)
    prefix = [[0.0] * (count + 1) for _ in range(count + 1)]
    for row in range(1, count + 1):
        for column in range(1, count + 1):
            weight = edges.get((order[row - 1], order[column - 1]), 0.0)
            above, left, corner = prefix[row - 1][column], prefix[row][column - 1], prefix[row - 1][column - 1]
            prefix[row][column] = above + left - corner + weight
    return [[prefix[row][column] - prefix[row][row] for column in range(count + 1)] for row in range(count + 1)]


def first_levels_own(order: Sequence[str], levels: int) -> dict[str, int]:
    """Return levels without compression: the first ``levels`` - 1 jobs get their own, the rest share the last."""
    return {job: min(rank, levels - 1) for rank, job in enumerate(order)}
