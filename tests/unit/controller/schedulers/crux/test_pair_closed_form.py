from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.schedulers.crux.pair_closed_form import higher_sending_time, lower_sending_time
from controller.schedulers.crux.pair_simulation import State, sending_times
from workloads.periodic_job import PeriodicJob, on_one_link

BEGIN_S, END_S = 9.0, 36.0

patterns = st.builds(
    lambda compute, communication, share: on_one_link(compute, communication, compute * share),
    st.floats(0.0, 3.0),
    st.floats(0.05, 3.0),
    st.floats(0.0, 1.0),
)
quarters = st.builds(
    lambda compute, communication, lead: on_one_link(compute / 4, communication / 4, min(compute, lead) / 4),
    st.integers(0, 12),
    st.integers(1, 12),
    st.integers(0, 12),
)
phases = st.sampled_from([0.0, 0.25, 0.5, 0.75])


@settings(max_examples=300, deadline=None)
@given(patterns | quarters, patterns | quarters, phases, phases)
def test_the_closed_form_sends_as_long_as_the_simulation(
    high: PeriodicJob[str], low: PeriodicJob[str], high_phase: float, low_phase: float
) -> None:
    high_offset, low_offset = high.period_s * high_phase, low.period_s * low_phase
    high_sent, low_sent = sending_times(
        State.at(high, high_offset), State.at(low, low_offset), END_S - BEGIN_S, BEGIN_S
    )
    assert higher_sending_time(high, high_offset, BEGIN_S, END_S) == pytest.approx(high_sent, abs=1e-5)
    assert lower_sending_time(low, low_offset, high, high_offset, BEGIN_S, END_S) == pytest.approx(low_sent, abs=1e-5)


def test_example_1_of_the_paper_in_closed_form() -> None:
    one, two = on_one_link(2, 2, 2), on_one_link(1, 1, 1)  # at offset 2 and 1 their communication starts
    assert lower_sending_time(two, 1.0, one, 2.0, 0.0, 12.0) == pytest.approx(3.0)
    assert lower_sending_time(one, 2.0, two, 1.0, 0.0, 12.0) == pytest.approx(4.0)


def test_below_a_job_that_always_sends_nothing_is_sent() -> None:
    assert lower_sending_time(on_one_link(1, 1, 1), 0.0, on_one_link(0, 1, 0), 0.0, 0.0, 50.0) == 0.0


def test_a_short_job_fits_thousands_of_iterations_into_the_gaps_of_a_long_one() -> None:
    sent = lower_sending_time(on_one_link(0.0005, 0.0005, 0.0005), 0.0, on_one_link(10, 10, 10), 0.0, 0.0, 200.0)
    assert sent == pytest.approx(50.0, rel=1e-3)
