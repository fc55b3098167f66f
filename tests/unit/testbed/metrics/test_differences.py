"""What a difference proves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.metrics.confidence import Difference, is_proven, paired, spread_of

VALUES = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6)


def test_a_difference_smaller_than_the_spread_is_not_called_a_gain() -> None:
    assert not paired([0.52, 0.50], [0.50, 0.51]).proven
    assert paired([0.60, 0.61], [0.50, 0.50]).proven


def test_a_difference_as_large_as_its_spread_proves_nothing() -> None:
    assert not Difference(1.0, 1.0).proven
    assert not Difference(0.0, 0.0).proven


def test_a_single_measurement_has_no_spread_and_proves_nothing() -> None:
    found = paired([0.9], [0.1])
    assert found.spread is None and not found.proven


def test_a_loss_is_proven_like_a_gain() -> None:
    assert is_proven(-2.0, 0.5) and is_proven(2.0, 0.5)


def test_pairs_need_a_partner_each() -> None:
    with pytest.raises(ValueError, match="expected pairs, not 2 values against 1"):
        paired([1.0, 2.0], [1.0])


@given(VALUES, st.data())
def test_where_a_difference_is_proven_all_pairs_agree_in_sign(values: list[float], data: st.DataObject) -> None:
    reference = data.draw(st.lists(st.floats(0.0, 1.0), min_size=len(values), max_size=len(values)))
    if paired(values, reference).proven:
        signs = {value > other for value, other in zip(values, reference, strict=True)}
        assert len(signs) == 1


@given(VALUES)
def test_nothing_is_proven_against_itself_in_another_order(values: list[float]) -> None:
    assert not paired(values, values[::-1]).proven
    assert spread_of(values) == max(values) - min(values)
