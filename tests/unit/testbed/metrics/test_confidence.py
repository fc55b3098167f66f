from __future__ import annotations

import random
import statistics

import pytest

from testbed.metrics.confidence import chance_beyond_spread, half_width, is_proven, spread_of


def test_one_value_has_no_interval() -> None:
    assert half_width([]) is None
    assert half_width([0.5]) is None


def test_equal_values_have_an_interval_of_no_width() -> None:
    assert half_width([0.5, 0.5, 0.5]) == 0.0


def test_the_interval_is_that_of_textbooks() -> None:
    """Ten values with mean 10 and standard deviation 1: 10 +- 2.262 / sqrt(10)."""
    values = [10 + 0.9**0.5 * sign for sign in (-1, 1) for _ in range(5)]
    assert statistics.stdev(values) == pytest.approx(1.0)
    assert half_width(values) == pytest.approx(0.7153, abs=1e-4)


@pytest.mark.parametrize(("count", "quantile"), [(2, 12.706), (31, 2.042), (41, 2.021), (61, 2.000), (121, 1.980)])
def test_the_width_follows_students_quantiles_for_any_count(count: int, quantile: float) -> None:
    values = [float(number % 2) for number in range(count)]
    standard_error = statistics.stdev(values) / count**0.5
    assert half_width(values) == pytest.approx(quantile * standard_error, rel=2e-3)


@pytest.mark.parametrize("count", [2, 5, 40])
def test_nineteen_of_twenty_intervals_hold_the_mean(count: int) -> None:
    draw = random.Random(1)
    held = 0
    for _ in range(4000):
        values = [draw.gauss(3.0, 2.0) for _ in range(count)]
        held += abs(statistics.fmean(values) - 3.0) <= (half_width(values) or 0.0)
    assert held / 4000 == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize("pairs", [2, 3, 4])
def test_chance_exceeds_its_spread_as_often_as_we_say(pairs: int) -> None:
    normal = random.Random(pairs).gauss
    drawn = [[normal(0.0, 1.0) for _ in range(pairs)] for _ in range(20_000)]
    proven = sum(is_proven(statistics.fmean(values), spread_of(values)) for values in drawn)
    assert proven / len(drawn) == pytest.approx(chance_beyond_spread(pairs), abs=0.012)


def test_one_pair_says_nothing_about_chance_and_many_leave_little_to_it() -> None:
    assert chance_beyond_spread(1) is None
    assert chance_beyond_spread(20) == chance_beyond_spread(6) == 0.001
