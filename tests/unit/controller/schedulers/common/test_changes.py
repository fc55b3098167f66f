"""What differs between two versions of a mapping, by its definition."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.common.changes import changes

VALUES = [object() for _ in range(3)]
MAPPINGS = st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(0, 2)), max_size=9).map(
    lambda pairs: {name: VALUES[number] for name, number in pairs}
)


@given(MAPPINGS, MAPPINGS)
def test_entries_that_left_and_came_are_those_whose_value_is_another_object(
    before: dict[str, object], now: dict[str, object]
) -> None:
    found = changes(before, now)
    assert found.left == {name: value for name, value in before.items() if now.get(name) is not value}
    assert found.come == {name: value for name, value in now.items() if before.get(name) is not value}
    stay = [name for name in before if name in now]
    assert found.moved == (list(now) != stay + [name for name in now if name not in before])
    assert bool(found) == (list(before.items()) != list(now.items()))


@given(st.lists(MAPPINGS, min_size=1, max_size=6))
def test_what_is_made_of_a_mapping_follows_it_in_its_order(history: list[dict[str, object]]) -> None:
    made: dict[str, tuple[object]] = {}
    before: dict[str, object] = {}
    for now in history:
        made_before = dict(made)
        found = changes(before, now).carry(made, lambda value: (value,))
        assert list(made.items()) == [(name, (value,)) for name, value in now.items()]
        assert found == replace(changes(made_before, made), moved=found.moved)
        assert found.moved == changes(before, now).moved
        before = now


@given(st.lists(MAPPINGS, min_size=1, max_size=6))
def test_chosen_entries_follow_in_their_order(history: list[dict[str, object]]) -> None:
    chosen: dict[str, object] = {}
    before: dict[str, object] = {}
    for now in history:
        chosen_before = dict(chosen)
        found = changes(before, now).among(chosen, lambda value: value is not VALUES[0])
        assert list(chosen.items()) == [(name, value) for name, value in now.items() if value is not VALUES[0]]
        expected = changes(chosen_before, chosen)
        assert (found.left, found.come) == (expected.left, expected.come)
        assert found.moved or not expected.moved
        before = now


def test_only_what_is_new_is_made() -> None:
    before, asked = {"a": VALUES[0], "b": VALUES[1]}, list[object]()
    now = {"a": VALUES[0], "b": VALUES[2], "c": VALUES[1]}
    made = {"a": 0, "b": 0}
    changes(before, now).carry(made, lambda value: asked.append(value) or 1)
    assert asked == [VALUES[2], VALUES[1]] and made == {"a": 0, "b": 1, "c": 1}
