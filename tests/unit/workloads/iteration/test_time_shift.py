"""A shifted job keeps its phase: early iterations wait for it, late ones go on, drift is mended now and then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.iteration.time_shift import DRIFT, EARLY, PATIENCE, PhaseKeeper, TimeShift


def test_the_first_iteration_waits_for_the_shift() -> None:
    assert PhaseKeeper(TimeShift(10.0, 3.0, 4.0)).wait(10.0) == 3.0


def test_without_a_period_a_job_is_delayed_once() -> None:
    keeper = PhaseKeeper(TimeShift(10.0, 3.0))
    assert [keeper.wait(now) for now in (10.0, 13.0, 99.0)] == [3.0, 0.0, 0.0]


@given(period=st.floats(0.1, 10), short=st.floats(0.0, 0.99 * EARLY), iterations=st.integers(1, 50))
def test_iterations_a_little_shorter_than_the_period_stay_in_phase(
    period: float, short: float, iterations: int
) -> None:
    keeper, now = PhaseKeeper(TimeShift(0.0, 0.0, period)), 0.0
    for count in range(iterations):
        now += keeper.wait(now)
        assert now == pytest.approx(count * period, abs=DRIFT * period)
        now += period * (1 - short)


def test_an_iteration_that_comes_late_goes_on_at_once() -> None:
    keeper = PhaseKeeper(TimeShift(0.0, 0.0, 1.0))
    assert keeper.wait(0.0) == 0.0
    assert keeper.wait(1.3) == 0.0


def test_a_job_that_stays_out_of_phase_is_put_back_after_a_while() -> None:
    keeper = PhaseKeeper(TimeShift(0.0, 0.0, 1.0))
    keeper.wait(0.0)
    waits = [keeper.wait(1.3 + count) for count in range(PATIENCE + 1)]
    assert waits[:-1] == [0.0] * PATIENCE
    assert waits[-1] == pytest.approx(0.7)
