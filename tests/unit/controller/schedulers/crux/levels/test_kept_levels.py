"""Levels in force stay where they can: always valid, and never lighter than the best found by more than the share."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.crux.levels.contention_graph import ContentionGraph
from controller.schedulers.crux.levels.kept_levels import NO_LEVEL, KeptLevels
from controller.schedulers.crux.levels.large_parts import compress_graph

LEVELS = 3


@st.composite
def graphs(draw: st.DrawFn) -> ContentionGraph:
    count = draw(st.integers(2, 12))
    pairs = [(higher, lower) for higher in range(count) for lower in range(higher + 1, count)]
    chosen = sorted(draw(st.sets(st.sampled_from(pairs), min_size=1)))
    intensity = np.array(draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)), float)
    higher = np.array([edge[0] for edge in chosen], np.intp)
    return ContentionGraph(count, higher, np.array([edge[1] for edge in chosen], np.intp), intensity[higher])


@st.composite
def graphs_in_force(draw: st.DrawFn) -> tuple[ContentionGraph, np.ndarray[tuple[int], np.dtype[np.intp]]]:
    graph = draw(graphs())
    level = st.integers(NO_LEVEL, LEVELS)  # LEVELS itself: a level that there is no more
    return graph, np.array(draw(st.lists(level, min_size=graph.count, max_size=graph.count)), np.intp)


def kept(graph: ContentionGraph, in_force: np.ndarray[tuple[int], np.dtype[np.intp]], share: float) -> list[int]:
    return KeptLevels(graph, LEVELS).kept(in_force, lambda: compress_graph(graph, LEVELS, 1), share).tolist()


@given(graphs_in_force(), st.sampled_from((0.0, 0.01, 0.1, 1.0)))
def test_what_is_kept_is_valid_and_cuts_what_was_stated(
    case: tuple[ContentionGraph, np.ndarray[tuple[int], np.dtype[np.intp]]], share: float
) -> None:
    graph, in_force = case
    levels = np.array(kept(graph, in_force, share))
    assert graph.valid(levels)
    assert levels.min() >= 0 and levels.max() < LEVELS
    assert graph.cut(levels) >= (1 - share) * graph.cut(compress_graph(graph, LEVELS, 1)) - 1e-9


@given(graphs_in_force(), st.sampled_from((0.0, 0.01, 0.1, 1.0)))
def test_levels_that_were_kept_once_stay(
    case: tuple[ContentionGraph, np.ndarray[tuple[int], np.dtype[np.intp]]], share: float
) -> None:
    graph, in_force = case
    once = kept(graph, in_force, share)
    assert kept(graph, np.array(once, np.intp), share) == once


@given(graphs_in_force())
def test_valid_levels_all_stay_where_any_cut_will_do(
    case: tuple[ContentionGraph, np.ndarray[tuple[int], np.dtype[np.intp]]],
) -> None:
    graph, drawn = case
    in_force = np.sort(np.clip(drawn, 0, LEVELS - 1))  # sorted by rank: never upwards
    assert kept(graph, in_force, 1.0) == in_force.tolist()


def chain(weights: list[float]) -> ContentionGraph:
    higher = np.arange(len(weights))
    return ContentionGraph(len(weights) + 1, higher, higher + 1, np.array(weights))


def test_a_job_that_joins_takes_a_level_between_those_it_contends_with() -> None:
    assert kept(chain([3.0, 2.0]), np.array([0, NO_LEVEL, 2]), 0.0) == [0, 1, 2]


def test_levels_that_cut_too_little_are_mended_job_by_job() -> None:
    assert kept(chain([3.0, 2.0]), np.array([1, 1, 2]), 0.01) == [0, 1, 2]
    assert kept(chain([3.0, 2.0]), np.array([1, 1, 2]), 0.6) == [1, 1, 2]


def test_without_levels_in_force_the_best_cut_counts() -> None:
    graph = chain([3.0, 1.0, 2.0])
    assert kept(graph, np.full(4, NO_LEVEL), 0.5) == compress_graph(graph, LEVELS, 1).tolist() == [0, 1, 1, 2]
