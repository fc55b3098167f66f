from __future__ import annotations

import pytest

from benchmarks.clamp import CHOSEN_ON, CLAMPS, CONFIRMED_ON, differences, largest_without_cost, performances


def test_the_rule_takes_the_largest_clamp_that_is_not_below_the_order_by_intensity() -> None:
    assert largest_without_cost({1.0: 0.98, 1.5: 0.985, 2.0: 0.98, 3.0: 0.979, 5.0: 0.981, 10.0: 0.97}) == 5.0
    assert largest_without_cost({1.0: 0.98, 1.5: 0.97, 10.0: 0.9}) == 1.0


def test_no_case_that_the_default_is_chosen_on_confirms_it_or_is_shown_by_the_figure() -> None:
    assert CHOSEN_ON not in CONFIRMED_ON
    assert 1 not in {seed for _, seed in (CHOSEN_ON, *CONFIRMED_ON)}


def test_differences_are_taken_case_by_case() -> None:
    one, other = [0.9, *[0.95] * 5], [0.8, *[0.85] * 5]
    found = differences([tuple(one), tuple(other)])
    assert found[1.0] == (0.0, 0.0)
    assert found[10.0] == pytest.approx((0.05, 0.0))


def test_performance_is_at_most_that_of_the_best_order() -> None:
    found = performances("population", 1, 0)
    assert len(found) == len(CLAMPS) and all(0 < value <= 1 + 1e-12 for value in found)
