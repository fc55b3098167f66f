from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.pair_simulation import State, sending_times
from controller.schedulers.crux.priority import (
    CLAMP,
    correction_factor,
    correction_factors,
    pattern_of,
    priority_gains,
    priority_order,
    transient_gain,
)
from workloads.periodic_job import PeriodicJob, on_one_link


def communicating_first(compute_s: float, communication_s: float) -> State:
    """A serial job at the moment its communication starts."""
    return State(on_one_link(compute_s, communication_s, compute_s), 0.0, 0.0, communication_s)


def example_1() -> tuple[State, State]:
    return communicating_first(2, 2), communicating_first(1, 1)


def example_2() -> tuple[State, State]:
    one = State.at(on_one_link(4, 1, 2), 0.0)
    two = State(on_one_link(2, 3, 1), compute_left=1.0, lead_left=0.0, communication_left=3.0)
    return one, two


def test_example_1_of_the_paper_with_the_long_job_first() -> None:
    one, two = example_1()
    assert sending_times(one, two, 12.0) == (6.0, 3.0)


def test_example_1_of_the_paper_with_the_short_job_first() -> None:
    one, two = example_1()
    assert sending_times(two, one, 12.0) == (6.0, 4.0)


def idle_seconds(high: State, low: State) -> tuple[float, float]:
    """What 12 s leave idle of each job, in the order given."""
    sending_times(high, low, 12.0)
    return 12.0 - high.computed_s, 12.0 - low.computed_s


def test_example_1_of_the_paper_leaves_these_seconds_idle() -> None:
    one, two = example_1()
    assert idle_seconds(one, two) == (6.0, 9.0)
    one, two = example_1()
    assert idle_seconds(two, one) == (6.0, 8.0)


def test_example_1_of_the_paper_has_these_utilisations_over_gpus_of_equal_number() -> None:
    one, two = example_1()
    assert 1 - sum(idle_seconds(one, two)) / 24 == 0.375
    one, two = example_1()
    assert 1 - sum(idle_seconds(two, one)) / 24 == pytest.approx(0.417, abs=5e-4)


def test_example_2_of_the_paper_leaves_these_seconds_idle() -> None:
    one, two = example_2()
    assert idle_seconds(one, two) == (0.0, 7.0)
    one, two = example_2()
    assert idle_seconds(two, one) == (6.0, 0.0)


def test_example_1_gives_the_short_job_a_factor_of_one_and_a_half() -> None:
    one, two = example_1()
    gain_two, gain_one = priority_gains(two, one, 12.0)
    assert (gain_one, gain_two) == (2.0, 3.0)
    assert gain_two / gain_one == 1.5


def test_example_1_keeps_its_ratio_over_1200_s() -> None:
    one, two = example_1()
    gain_two, gain_one = priority_gains(two, one, 1200.0)
    assert gain_two / gain_one == pytest.approx(1.5)


def test_example_2_of_the_paper_with_the_first_job_first() -> None:
    one, two = example_2()
    assert sending_times(one, two, 12.0) == (3.0, 7.0)


def test_example_2_of_the_paper_with_the_second_job_first() -> None:
    one, two = example_2()
    assert sending_times(two, one, 12.0) == (9.0, 3.0)


def test_example_2_is_a_transient_so_neither_job_gains_in_the_long_run() -> None:
    one, two = example_2()
    assert priority_gains(two, one, 1200.0) == pytest.approx((2.0, 0.0))
    assert correction_factor(two.pattern, one.pattern) == 1.0


def profiles_of_example_2(names: tuple[str, str]) -> dict[str, Profile]:
    """J1 and J2 called ``names``; the link moves 1 byte per second."""
    one = Profile(names[0], intensity=10.0, communication_s=1, compute_s=4, lead_s=2, iteration_s=4, traffic=1 / 4)
    two = Profile(names[1], intensity=10.0, communication_s=3, compute_s=2, lead_s=1, iteration_s=4, traffic=3 / 4)
    return {names[0]: one, names[1]: two}


def test_example_2_saves_its_starting_phase_an_idle_second_of_the_larger_job() -> None:
    one, two = example_2()
    gain_two, gain_one = priority_gains(two, one, 12.0)
    assert (gain_one, gain_two) == (0.0, 2.0)
    one_first = sum(idle * gpus for idle, gpus in zip(idle_seconds(*example_2()), (2, 12), strict=True))
    two_first = sum(idle * gpus for idle, gpus in zip(idle_seconds(*reversed(example_2())), (12, 2), strict=True))
    assert (one_first, two_first) == (84.0, 72.0)


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_example_2_serves_the_second_job_first_whatever_the_jobs_are_called(names: tuple[str, str]) -> None:
    profiles = profiles_of_example_2(names)
    factors = correction_factors(tuple(profiles.values()))
    priorities = {job: factors[job] * found.intensity for job, found in profiles.items()}
    assert len(set(priorities.values())) == 1
    assert priority_order(priorities, profiles) == (names[1], names[0])


def test_a_transient_is_worth_what_the_two_jobs_gain_from_going_first_in_the_warm_up() -> None:
    one, two = profiles_of_example_2(("one", "two")).values()
    phases = [(State.at(pattern_of(two), offset), State.at(pattern_of(one), 0.0)) for offset in (0.0, 1.0, 2.0, 3.0)]
    gains = [priority_gains(*states, 12.0) for states in phases]
    assert gains[1] == priority_gains(*reversed(example_2()), 12.0) == (2.0, 0.0)
    expected = sum(10 * gain_two - 10 * gain_one for gain_two, gain_one in gains) / 4
    assert transient_gain(two, one) == pytest.approx(expected) == 7.5
    assert transient_gain(one, one) == 0.0


def test_a_transient_decides_only_between_equal_priorities() -> None:
    profiles = profiles_of_example_2(("one", "two"))
    assert priority_order({"one": 10.0001, "two": 10.0}, profiles) == ("one", "two")
    assert priority_order({"one": 10.000000001, "two": 10.0}, profiles) == ("two", "one")


def test_jobs_alike_are_ordered_by_arrival() -> None:
    one = profiles_of_example_2(("a", "x"))["a"]
    profiles = {job: replace(one, job=job) for job in "bca"}
    assert priority_order(dict.fromkeys("bca", 10.0), profiles) == ("b", "c", "a")


def test_a_state_in_mid_iteration_is_where_a_lone_run_would_be() -> None:
    overlapping = State.at(on_one_link(4, 3, 2), 3.0)
    assert (overlapping.compute_left, overlapping.lead_left, overlapping.communication_left) == (1.0, 0.0, 2.0)


def test_the_reference_job_has_factor_one() -> None:
    assert correction_factor(on_one_link(1, 1, 1), on_one_link(1, 1, 1)) == 1.0


def test_equal_priorities_are_ordered_by_arrival() -> None:
    assert priority_order({"b": 2.0, "c": 3.0, "a": 2.0}) == ("c", "b", "a")


def test_a_pattern_whose_lead_exceeds_its_compute_is_refused() -> None:
    with pytest.raises(ValueError, match="lead_s <= compute_s"):
        on_one_link(1, 1, 2)


patterns = st.builds(
    lambda compute, communication, share: on_one_link(compute, communication, compute * share),
    st.floats(0.0, 3.0),
    st.floats(0.1, 3.0),
    st.floats(0.0, 1.0),
)


@given(patterns, patterns)
def test_the_higher_job_runs_as_if_it_were_alone(high: PeriodicJob[str], low: PeriodicJob[str]) -> None:
    sent, _ = sending_times(State.at(high, 0.0), State.at(low, 0.0), 10 * high.period_s)
    assert sent == pytest.approx(10 * high.communication_s, rel=1e-5, abs=1e-5)


@given(patterns, patterns)
def test_the_link_never_sends_longer_than_time_passes(high: PeriodicJob[str], low: PeriodicJob[str]) -> None:
    assert sum(sending_times(State.at(high, 0.0), State.at(low, 0.0), 20.0)) <= 20.0 + 1e-6


@given(patterns, patterns, st.sampled_from([1.0, 1.5, 2.0, CLAMP, 10.0]))
def test_a_correction_factor_stays_in_its_clamp(
    job: PeriodicJob[str], reference: PeriodicJob[str], clamp: float
) -> None:
    assert 1 / clamp <= correction_factor(job, reference, clamp) <= clamp


@given(patterns, patterns)
def test_a_smaller_clamp_cuts_a_factor_and_changes_nothing_else(
    job: PeriodicJob[str], reference: PeriodicJob[str]
) -> None:
    wide = correction_factor(job, reference, 1e9)
    assert correction_factor(job, reference, 2.0) == min(2.0, max(0.5, wide))


def test_a_clamp_of_one_leaves_the_order_to_intensity() -> None:
    short, long = on_one_link(1, 1, 1), on_one_link(2, 2, 2)
    assert correction_factor(short, long, 10.0) > 1.1
    assert correction_factor(short, long, 1.0) == 1.0
