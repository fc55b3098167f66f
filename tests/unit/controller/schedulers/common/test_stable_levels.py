"""Levels in force stay where they express the order; who must rise does so only for want of room."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.common.stable_levels import stable_levels


def test_from_nothing_levels_follow_the_order() -> None:
    assert stable_levels(("a", "b", "c"), {}, {}, 8) == {"a": 0, "b": 1, "c": 2}


def test_who_is_left_when_the_first_ends_keeps_its_level() -> None:
    assert stable_levels(("b", "c"), {"a": 0, "b": 1, "c": 2}, {}, 8) == {"b": 1, "c": 2}


def test_a_newcomer_takes_a_free_level_or_pushes_others_down() -> None:
    assert stable_levels(("new", "b", "c"), {"b": 1, "c": 2}, {}, 8) == {"new": 0, "b": 1, "c": 2}
    assert stable_levels(("b", "new", "c"), {"b": 1, "c": 2}, {}, 8) == {"b": 1, "new": 2, "c": 3}


def test_only_for_want_of_room_does_one_rise() -> None:
    assert stable_levels(("a", "b", "new"), {"a": 2, "b": 3}, {}, 4) == {"a": 1, "b": 2, "new": 3}


def test_more_names_than_levels_take_the_levels_wanted() -> None:
    assert stable_levels(("a", "b", "c"), {"a": 1}, {"a": 0, "b": 1, "c": 1}, 2) == {"a": 0, "b": 1, "c": 1}


@given(
    order=st.permutations([f"j{n}" for n in range(6)]),
    in_force=st.dictionaries(st.sampled_from([f"j{n}" for n in range(6)]), st.integers(0, 7)),
)
def test_levels_always_rise_along_the_order_and_exist(order: list[str], in_force: dict[str, int]) -> None:
    levels = stable_levels(order, in_force, {}, 8)
    assert all(levels[first] < levels[second] for first, second in pairwise(order))
    assert set(levels.values()) <= set(range(8))
