"""Maximum-weight matching against trying everything."""

from __future__ import annotations

from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.managers.placers.matching import maximum_weight_matching

Matrix = list[list[int]]


def heaviest(weights: Matrix) -> int:
    """The weight of the best of all matchings."""

    @lru_cache(None)
    def best(left: int) -> int:
        if not left:
            return 0
        first = (left & -left).bit_length() - 1
        rest = left & ~(1 << first)
        partners = [other for other in range(len(weights)) if rest >> other & 1 and weights[first][other] > 0]
        return max([best(rest), *(weights[first][other] + best(rest & ~(1 << other)) for other in partners)])

    return best((1 << len(weights)) - 1)


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    size = draw(st.integers(0, 9))
    most = draw(st.sampled_from([1, 3, 12, 1000]))
    weights = [[0] * size for _ in range(size)]
    for one in range(size):
        for other in range(one):
            weights[one][other] = weights[other][one] = max(0, draw(st.integers(-most, most)))
    return weights


@settings(max_examples=150, deadline=None)
@given(matrices())
def test_no_matching_weighs_more(weights: Matrix) -> None:
    pairs = maximum_weight_matching(weights)
    matched = [vertex for pair in pairs for vertex in pair]
    assert len(set(matched)) == len(matched)
    assert all(weights[one][other] > 0 for one, other in pairs)
    assert sum(weights[one][other] for one, other in pairs) == heaviest(weights)


def with_edges(size: int, *edges: tuple[int, int, int]) -> Matrix:
    weights = [[0] * size for _ in range(size)]
    for one, other, weight in edges:
        weights[one][other] = weights[other][one] = weight
    return weights


@pytest.mark.parametrize(
    ("weights", "pairs"),
    [
        (with_edges(4, (0, 1, 2), (1, 2, 3), (2, 3, 2)), ((0, 1), (2, 3))),
        (with_edges(3, (0, 1, 2), (1, 2, 5), (0, 2, 2)), ((1, 2),)),
        # An odd cycle that shrinks, and a tail that takes one of its vertices away.
        (with_edges(6, (0, 1, 8), (1, 2, 8), (0, 2, 8), (2, 3, 7), (3, 4, 5), (4, 5, 4)), ((0, 1), (2, 3), (4, 5))),
        ([[0]], ()),
        ([], ()),
    ],
)
def test_small_graphs(weights: Matrix, pairs: tuple[tuple[int, int], ...]) -> None:
    assert maximum_weight_matching(weights) == pairs


def test_a_matrix_that_is_not_symmetric_is_refused() -> None:
    with pytest.raises(ValueError, match="square, symmetric"):
        maximum_weight_matching([[0, 1], [2, 0]])
    with pytest.raises(ValueError, match="square, symmetric"):
        maximum_weight_matching([[0, 1, 2], [1, 0, 3]])
