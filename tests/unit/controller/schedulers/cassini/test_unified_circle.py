"""CASSINI's circle, score and rounding of periods: closed forms, and cases in which no shift helps."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.schedulers.cassini.common_periods import common_periods
from controller.schedulers.cassini.unified_circle import OnCircle, Turned, UnifiedCircle, best_turns

BINS = 72


def sending(duty: float, copies: int = 1, share: float = 1.0, start: float = 0.0) -> OnCircle:
    """A job that sends for the first ``duty`` of its period."""
    return OnCircle(copies, ((0.0, duty, share),), start)


def turned(*jobs: OnCircle) -> Turned:
    return best_turns(UnifiedCircle(jobs, BINS))


@given(st.floats(0.01, 1.0))
@settings(max_examples=60)
def test_two_full_rate_jobs_of_one_period_score_1_minus_what_does_not_fit(duty: float) -> None:
    found = turned(sending(duty), sending(duty))
    assert found.score == pytest.approx(1 - max(0.0, 2 * duty - 1), abs=1e-9)
    assert found.unshifted == pytest.approx(1 - duty, abs=1 / BINS)  # demand is the mean of a bin


def test_three_jobs_that_send_a_third_of_the_time_fit() -> None:
    found = turned(*[sending(1 / 3)] * 3)
    assert found.score == pytest.approx(1.0)
    assert sorted(found.turns) == pytest.approx([0, 1 / 3, 2 / 3])


def test_six_jobs_that_send_a_sixth_of_the_time_fit() -> None:
    assert turned(*[sending(1 / 6)] * 6).score == pytest.approx(1.0)


def test_40_and_60_ms_make_a_circle_of_120_ms_with_3_and_2_copies() -> None:
    found = common_periods({"a": 0.040, "b": 0.060}, [("a", "b")], 0.01)
    assert found.perimeter_s == pytest.approx(0.120)
    assert found.copies == {"a": 3, "b": 2}


def test_40_and_60_ms_fit_where_both_send_in_a_quarter_of_the_shorter() -> None:
    # Every 120 ms a sends in [0, 10), [40, 50), [80, 90) and b, turned by 10, in [10, 20), [70, 80).
    found = turned(sending(1 / 4, copies=3), sending(1 / 6, copies=2))
    assert found.unshifted == pytest.approx(1 - 10 / 120)
    assert found.score == pytest.approx(1.0)


def test_some_pairs_of_periods_score_the_same_for_every_shift_and_stay_unshifted() -> None:
    # A job that sends for a whole multiple of the common divisor of two periods meets the other equally always.
    circle = UnifiedCircle((sending(1 / 2, copies=3), sending(1 / 2, copies=2)), BINS)
    every = [circle.score((0, turn)) for turn in range(len(circle.tables[1]))]
    assert max(every) - min(every) < 1e-9
    assert every[0] == pytest.approx(0.75)
    assert best_turns(circle) == Turned((0.0, 0.0), circle.score((0, 0)), circle.score((0, 0)))


def test_the_score_can_go_below_zero() -> None:
    assert turned(*[sending(1.0)] * 4).score == pytest.approx(-2.0)


def test_jobs_that_never_fill_the_link_are_not_turned() -> None:
    found = turned(sending(0.8, share=0.5), sending(0.8, share=0.5))
    assert (found.turns, found.score) == ((0.0, 0.0), pytest.approx(1.0))


def test_jobs_that_start_apart_already_are_not_turned() -> None:
    found = turned(sending(0.25), sending(0.25, start=0.5))
    assert (found.turns, found.unshifted) == ((0.0, 0.5), pytest.approx(1.0))


def test_where_there_is_room_a_job_goes_to_the_middle_of_it() -> None:
    assert turned(sending(0.25), sending(0.25)).turns == (0.0, 0.5)


def test_a_job_of_two_bursts_takes_in_the_other_between_them() -> None:
    bursts = OnCircle(1, ((0.0, 0.25, 1.0), (0.5, 0.75, 1.0)))
    assert turned(bursts, bursts).score == pytest.approx(1.0)


JOBS = st.lists(
    st.builds(sending, st.floats(0.05, 1.0), st.integers(1, 6), st.sampled_from([0.25, 0.5, 1.0]), st.floats(0, 0.99)),
    min_size=2,
    max_size=4,
)


@given(JOBS)
@settings(max_examples=40)
def test_turning_is_never_worse_than_not_turning_and_repeatable(jobs: list[OnCircle]) -> None:
    found = turned(*jobs)
    assert found.score >= found.unshifted
    assert found == turned(*jobs)


@given(st.lists(st.floats(0.05, 0.9), min_size=2, max_size=2), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=30)
def test_for_two_jobs_no_turn_is_better_than_the_one_found(duties: list[float], one: int, two: int) -> None:
    circle = UnifiedCircle((sending(duties[0], one), sending(duties[1], two)), 24)
    best = max(circle.score((0, turn)) for turn in range(len(circle.tables[1])))
    assert best_turns(circle).score == pytest.approx(best, abs=1e-9)


PERIODS = st.lists(st.floats(0.05, 5.0), min_size=2, max_size=6)


@given(PERIODS, st.sampled_from([0.01, 0.02, 0.1]))
@settings(max_examples=40)
def test_periods_are_rounded_up_by_little_to_divisors_of_a_perimeter_with_a_cap(
    periods: list[float], grid: float
) -> None:
    alone = {str(index): period for index, period in enumerate(periods)}
    found = common_periods(alone, [tuple(alone)], grid)
    for job, period in alone.items():
        assert period * (1 - 1e-8) <= found.period_s(job) <= period * (1 + grid / 2) ** 2 * (1 + 1e-8)
        assert isclose(found.period_s(job) * found.copies[job], found.perimeter_s)
    assert found.perimeter_s <= max(periods) * (1 + grid) * (2 / grid + 2)


def test_periods_that_nearly_agree_become_one() -> None:
    found = common_periods({"a": 1.0, "b": 1.004, "c": 0.37}, [("a", "b"), ("b", "c")], 0.01)
    assert found.copies["a"] == found.copies["b"]
