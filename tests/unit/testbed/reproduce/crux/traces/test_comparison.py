"""Distances of bars, and their order."""

from __future__ import annotations

import pytest

from testbed.reproduce.crux.traces.comparison import distance_points, mean_distance_points, said_of_order, swapped

PAPER = {"a": 0.39, "b": 0.48, "c": 0.49, "d": 0.62}


def test_distances_are_in_points_and_have_no_sign() -> None:
    assert distance_points(0.39, 0.37) == pytest.approx(2) == distance_points(0.37, 0.39)
    assert mean_distance_points([(0.39, 0.37), (0.5, 0.54)]) == pytest.approx(3)


def test_bars_within_a_point_of_each_other_may_swap() -> None:
    assert swapped(PAPER, {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4}) == ()
    assert said_of_order(PAPER, {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4}) == "order as published"


def test_pairs_that_break_the_order_are_named_lower_first() -> None:
    here = {"a": 0.1, "b": 0.3, "c": 0.5, "d": 0.4}
    assert swapped(PAPER, here) == (("c", "d"),)
    assert said_of_order(PAPER, here) == "not in the paper's order: c over d"


def test_equal_bars_are_not_in_order() -> None:
    assert swapped({"a": 0.3, "b": 0.5}, {"a": 0.4, "b": 0.4}) == (("a", "b"),)
