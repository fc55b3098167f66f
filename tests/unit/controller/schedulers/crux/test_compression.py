from __future__ import annotations

from functools import cache
from itertools import combinations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.crux.compression import (
    ORDERS,
    best_cut,
    compress,
    contending,
    contention_edges,
    first_levels_own,
    orders_tried,
    random_topological_order,
)

FIGURE_14 = {("1", "2"): 5.0, ("1", "3"): 5.0, ("1", "4"): 5.0, ("1", "5"): 5.0, ("2", "3"): 2.0, ("5", "4"): 4.0}


def random_dag(seed: int, fewest: int = 4, most: int = 6) -> tuple[list[str], dict[tuple[str, str], float]]:
    random = Random(seed)
    jobs = [str(number) for number in range(random.randint(fewest, most))]
    intensity = {job: random.uniform(1, 10) for job in jobs}
    edges = {
        (higher, lower): intensity[higher]
        for rank, higher in enumerate(jobs)
        for lower in jobs[rank + 1 :]
        if random.random() < 0.5
    }
    return jobs, edges


@cache
def all_choices(jobs: int, levels: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(list(product(range(levels), repeat=jobs)))


def optimum(jobs: list[str], edges: dict[tuple[str, str], float], levels: int) -> float:
    choices = all_choices(len(jobs), levels)
    weight, valid = np.zeros(len(choices)), np.ones(len(choices), bool)
    for (higher, lower), value in edges.items():
        above, below = choices[:, jobs.index(higher)], choices[:, jobs.index(lower)]
        valid &= above <= below
        weight += value * (above < below)
    return float(weight[valid].max())


def cut_weight(groups: dict[str, int], edges: dict[tuple[str, str], float]) -> float:
    """The weight of the edges between different groups."""
    return sum(weight for (higher, lower), weight in edges.items() if groups[higher] != groups[lower])


def test_figure_13_separates_both_pairs_with_two_levels() -> None:
    edges = {("1", "2"): 4.0, ("3", "4"): 2.0}
    assert compress(["1", "2", "3", "4"], edges, 2) == {"1": 0, "2": 1, "3": 0, "4": 1}


def test_figure_14_has_a_cut_of_three_levels_that_loses_nothing() -> None:
    levels = compress(["1", "2", "5", "3", "4"], FIGURE_14, 3)
    assert levels == {"1": 0, "2": 1, "5": 1, "3": 2, "4": 2}
    assert cut_weight(levels, FIGURE_14) == sum(FIGURE_14.values())


def test_figure_15_the_drawn_order_alone_gives_that_cut() -> None:
    assert best_cut(["1", "2", "5", "3", "4"], FIGURE_14, 3) == {"1": 0, "2": 1, "5": 1, "3": 2, "4": 2}


def test_compression_is_the_optimum_on_99_of_100_graphs_of_up_to_7_jobs() -> None:
    shares = []
    for seed in range(1000):
        jobs, edges = random_dag(seed, fewest=2, most=7)
        levels = 2 + seed % 2
        best = optimum(jobs, edges, levels)
        shares.append(cut_weight(compress(jobs, edges, levels, seed), edges) / best if best else 1.0)
    assert sum(share > 1 - 1e-9 for share in shares) >= 990
    assert min(shares) > 0.9
    assert max(shares) < 1 + 1e-9


def test_a_chain_of_more_jobs_than_levels_loses_its_lightest_edge() -> None:
    edges = {("a", "b"): 3.0, ("b", "c"): 1.0, ("c", "d"): 2.0}
    assert compress(["a", "b", "c", "d"], edges, 3) == {"a": 0, "b": 1, "c": 1, "d": 2}


def test_parts_that_do_not_contend_are_levelled_by_themselves() -> None:
    one, two = {("a", "b"): 3.0, ("b", "c"): 1.0, ("a", "c"): 3.0}, {("x", "y"): 9.0}
    together = compress(["x", "a", "y", "b", "c"], {**one, **two}, 2)
    assert together == {**compress(["a", "b", "c"], one, 2), **compress(["x", "y"], two, 2)}


def test_edges_in_a_circle_are_refused() -> None:
    with pytest.raises(ValueError, match="the edges form a cycle"):
        compress(["a", "b"], {("a", "b"): 1.0, ("b", "a"): 1.0}, 2)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_no_edge_ever_points_upwards(seed: int, levels: int) -> None:
    jobs, edges = random_dag(seed)
    groups = compress(jobs, edges, levels, seed)
    assert all(groups[higher] <= groups[lower] for higher, lower in edges)
    assert set(groups.values()) == set(range(max(groups.values()) + 1))
    assert max(groups.values()) < levels


@given(st.integers(0, 10_000))
def test_every_order_tried_is_topological_and_complete(seed: int) -> None:
    jobs, edges = random_dag(seed)
    for order in orders_tried(jobs, edges, seed):
        assert sorted(order) == sorted(jobs)
        assert all(order.index(higher) < order.index(lower) for higher, lower in edges)


def test_orders_drawn_breadth_first_cut_more_of_a_large_part_than_those_that_pick_any_ready_job() -> None:
    random = Random(1)
    jobs = [f"job{number}" for number in range(200)]
    weights = sorted((random.lognormvariate(0, 1) for _ in jobs), reverse=True)
    pairs = combinations(range(len(jobs)), 2)
    edges = {(jobs[higher], jobs[lower]): weights[higher] for higher, lower in pairs if random.random() < 0.03}
    any_ready = max(
        cut_weight(best_cut(random_topological_order(jobs, edges, random), edges, 3), edges) for _ in range(ORDERS)
    )
    assert cut_weight(compress(jobs, edges, 3), edges) > 1.02 * any_ready


def test_with_a_level_for_everybody_nothing_is_lost() -> None:
    jobs, edges = random_dag(3)
    assert cut_weight(compress(jobs, edges, 8), edges) == pytest.approx(sum(edges.values()))


def test_edges_join_only_jobs_that_share_a_link() -> None:
    links = {"a": frozenset({"x"}), "b": frozenset({"x", "y"}), "c": frozenset({"z"})}
    edges = contention_edges(("b", "a", "c"), links, {"a": 1.0, "b": 2.0, "c": 3.0})
    assert edges == {("b", "a"): 2.0}
    assert contending(("b", "a", "c"), edges) == ("b", "a")


def test_without_compression_the_last_level_is_shared() -> None:
    assert first_levels_own(["a", "b", "c", "d"], 3) == {"a": 0, "b": 1, "c": 2, "d": 2}


def test_no_levels_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="levels must be at least 1, not 0"):
        compress(["a"], {}, 0)
