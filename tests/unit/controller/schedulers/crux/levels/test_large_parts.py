"""Cuts from coarse to fine against the exact dynamic programme, and what holds for all of them."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.schedulers.crux.compression import compress
from controller.schedulers.crux.levels.contention_graph import ContentionGraph
from controller.schedulers.crux.levels.large_parts import compress_graph


def random_graph(jobs: int, edges: int, seed: int) -> ContentionGraph:
    """Pairs at random, intensities log-normal and falling with the rank."""
    random = Random(seed)
    pairs = sorted({tuple(sorted(random.sample(range(jobs), 2))) for _ in range(edges)})
    intensity = np.array(sorted((random.lognormvariate(0, 1) for _ in range(jobs)), reverse=True))
    higher, lower = (np.array([pair[side] for pair in pairs], np.intp) for side in (0, 1))
    return ContentionGraph(jobs, higher, lower, intensity[higher])


def exact(graph: ContentionGraph, levels: int) -> float:
    """The cut of the compression that tries every place of its orders."""
    names = [str(job) for job in range(graph.count)]
    rows = zip(graph.higher.tolist(), graph.lower.tolist(), graph.weight.tolist(), strict=True)
    found = compress(names, {(names[higher], names[lower]): weight for higher, lower, weight in rows}, levels)
    return graph.cut(np.array([found[name] for name in names]))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 400), st.integers(1, 5))
def test_levels_are_valid_and_without_gaps(seed: int, jobs: int, levels: int) -> None:
    graph = random_graph(jobs, 3 * jobs, seed)
    found = compress_graph(graph, levels, seed)
    assert graph.valid(found)
    assert set(found.tolist()) == set(range(int(found.max()) + 1))
    assert found.max() < levels


@pytest.mark.parametrize(("jobs", "edges", "levels"), [(300, 2000, 8), (400, 8000, 3), (450, 1500, 4)])
def test_hardly_anything_is_lost_to_blocks(jobs: int, edges: int, levels: int) -> None:
    graph = random_graph(jobs, edges, seed=1)
    assert graph.cut(compress_graph(graph, levels, 1)) > 0.995 * exact(graph, levels)


def test_a_part_with_short_chains_loses_nothing() -> None:
    graph = random_graph(600, 250, seed=1)
    deepest = int(graph.depth.max())
    assert graph.cut(compress_graph(graph, deepest + 1, 1)) == pytest.approx(graph.total)


def test_the_same_seed_gives_the_same_levels() -> None:
    graph = random_graph(700, 3000, seed=2)
    assert compress_graph(graph, 3, 5).tolist() == compress_graph(graph, 3, 5).tolist()


def test_a_graph_is_that_of_the_jobs_which_share_links() -> None:
    beside = {"a": {"b", "c"}, "b": {"a"}, "c": {"a"}, "d": set[str]()}
    graph = ContentionGraph.among("bacd", beside.__getitem__, [4.0, 3.0, 2.0, 1.0])
    assert list(zip(graph.higher.tolist(), graph.lower.tolist(), graph.weight.tolist(), strict=True)) == [
        (0, 1, 4.0),
        (1, 2, 3.0),
    ]
    assert graph.depth.tolist() == [0, 1, 2, 0]
    assert all(one <= other for one, other in pairwise(graph.higher.tolist()))
