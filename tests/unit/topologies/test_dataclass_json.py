"""One codec for dataclasses: with checks for what strangers send, without for what a pipe of our own carries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.dataclass_json import decode, encode, rebuild


@dataclass(frozen=True)
class Leaf:
    name: str
    size: float = 1.0


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    by_name: Mapping[str, Leaf | None]
    pair: tuple[str, Leaf]
    kind: Literal["oak", "elm"]
    first: Leaf | None = None
    weights: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    depth: int = field(init=False, default=0)


names = st.text("abc", max_size=3)
leaves = st.builds(Leaf, names, st.floats(0, 1e9))
trees = st.builds(
    Tree,
    st.lists(leaves, max_size=3).map(tuple),
    st.dictionaries(names, st.none() | leaves, max_size=3),
    st.tuples(names, leaves),
    st.sampled_from(["oak", "elm"]),
    st.none() | leaves,
    st.dictionaries(names, st.tuples(st.integers(), st.floats(0, 1)), max_size=3),
)


@given(trees)
def test_what_is_encoded_is_read_back_the_same_with_and_without_checks(tree: Tree) -> None:
    data = json.loads(json.dumps(encode(tree)))
    assert decode(Tree, data, "tree") == tree
    assert rebuild(Tree, data) == tree


def test_reading_leaves_the_data_as_it_was() -> None:
    data: dict[str, Any] = {"leaves": [{"name": "a"}], "by_name": {}, "pair": ["b", {"name": "c"}], "kind": "oak"}
    before = json.dumps(data)
    assert rebuild(Tree, data) == decode(Tree, data, "tree")
    assert json.dumps(data) == before


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"size": 1.0}, "leaf: key 'name' is missing"),
        ({"name": "a", "sise": 1.0}, "leaf: unknown key 'sise', expected name, size"),
        ({"name": 5}, "leaf.name: expected a string, not a whole number"),
        ({"name": "a", "size": float("inf")}, "leaf.size: expected a finite number, not inf"),
    ],
)
def test_what_strangers_send_is_checked(data: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode(Leaf, data, "leaf")


@pytest.mark.parametrize("data", [{"size": 1.0}, {"name": "a", "sise": 1.0}])
def test_keys_that_do_not_fit_are_noticed_without_checks_too(data: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        rebuild(Leaf, data)


def test_which_of_several_dataclasses_is_meant_is_not_guessed() -> None:
    with pytest.raises(TypeError, match="cannot be told without checks"):
        rebuild(Either, {"one": {"name": "a"}})


@dataclass(frozen=True)
class Either:
    one: Leaf | Tree
