"""Long-run rates: against closed forms, and against stepping through every iteration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.fluid.periodic import simulate
from testbed.fluid.steady_state import Settled, settle, state_in_phase
from workloads.periodic_job import PeriodicJob

Fluid = PeriodicJob[int]


def fluid(
    compute_s: float,
    lead_s: float,
    loads: dict[int, float],
    level: int,
    gpus: float,
    pause_s: float = 0.0,
    offset_s: float = 0.0,
) -> Fluid:
    return PeriodicJob(compute_s, lead_s, loads, gpus, offset_s, level, pause_s)


@st.composite
def fluids(draw: st.DrawFn, fastest: float = 1.0) -> list[Fluid]:
    """Up to twelve jobs; those that are drawn to be fast have iterations ``fastest`` times as long."""
    count = draw(st.integers(1, 12))
    made = []
    for _ in range(count):
        compute = draw(st.floats(0.1, 2.0))
        lead = compute * draw(st.floats(0.0, 1.0))
        links = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True))
        seconds = draw(st.floats(0.05, 1.5))
        level, weight = draw(st.integers(0, 3)), draw(st.sampled_from([1.0, 8.0, 64.0]))
        shorter = draw(st.sampled_from([1.0, fastest]))
        loads = {link: shorter * seconds * draw(st.floats(0.2, 1.0)) for link in links}
        made.append(fluid(shorter * compute, shorter * lead, loads, level, weight))
    return made


def utilization(jobs: list[Fluid], settled: Settled) -> float:
    busy = sum(rate * job.compute_s * job.gpus for rate, job in zip(settled.rates, jobs, strict=True))
    return busy / sum(job.gpus for job in jobs)


def test_a_job_alone_runs_at_its_period_and_its_pause_lengthens_it() -> None:
    job = fluid(1.0, 0.4, {7: 0.8, 9: 0.2}, 0, 8.0)
    assert settle([job]).rates[0] == pytest.approx(1 / 1.2)
    paused = fluid(1.0, 0.4, {7: 0.8}, 0, 8.0, pause_s=0.3)
    assert settle([paused]).rates[0] == pytest.approx(1 / 1.5, rel=1e-3)


def test_a_job_that_sends_nothing_is_never_slowed_down() -> None:
    jobs = [fluid(0.5, 0.5, {}, 0, 1.0), fluid(1.0, 1.0, {1: 4.0}, 0, 1.0), fluid(1.0, 1.0, {1: 4.0}, 0, 1.0)]
    assert settle(jobs).rates[0] == pytest.approx(2.0, rel=1e-3)


def test_two_serial_jobs_of_one_level_that_start_together_share_the_link_for_ever() -> None:
    jobs = [fluid(1.0, 1.0, {0: 1.0}, 0, 1.0), fluid(1.0, 1.0, {0: 1.0}, 0, 1.0)]
    assert settle(jobs).rates == pytest.approx((1 / 3, 1 / 3), rel=1e-3)


def test_two_serial_jobs_half_an_iteration_apart_never_meet() -> None:
    jobs = [fluid(1.0, 1.0, {0: 1.0}, 0, 1.0), fluid(1.0, 1.0, {0: 1.0}, 0, 1.0, offset_s=1.0)]
    assert settle(jobs).rates == pytest.approx((0.5, 0.5), rel=1e-3)


def test_the_higher_level_runs_as_if_it_were_alone() -> None:
    jobs = [fluid(1.0, 0.5, {0: 0.9}, 0, 1.0), fluid(0.7, 0.2, {0: 1.1, 1: 0.5}, 1, 1.0)]
    assert settle(jobs).rates[0] == pytest.approx(1 / 1.4, rel=1e-3)


@given(fluids())
@settings(max_examples=60, deadline=None)
def test_a_fixed_stretch_is_the_event_by_event_simulation(jobs: list[Fluid]) -> None:
    horizon = 7.3
    found = settle(jobs, horizon)
    exact = simulate(
        [PeriodicJob(j.compute_s, j.lead_s, {str(k): v for k, v in j.loads.items()}, j.gpus) for j in jobs],
        [j.level for j in jobs],
        horizon,
    )
    for rate, job, busy in zip(found.rates, jobs, exact.busy_s, strict=True):
        assert rate * job.compute_s * horizon == pytest.approx(busy, abs=1e-6)


@given(fluids())
@settings(max_examples=30, deadline=None)
def test_two_stretches_that_follow_each_other_are_one(jobs: list[Fluid]) -> None:
    whole = settle(jobs, 9.0)
    first = settle(jobs, 4.0)
    second = settle(jobs, 5.0, first.states)
    for one, other, both in zip(first.rates, second.rates, whole.rates, strict=True):
        assert 4.0 * one + 5.0 * other == pytest.approx(9.0 * both, abs=1e-6)


@given(fluids())
@settings(max_examples=25, deadline=None)
def test_long_run_utilisation_is_that_of_many_iterations(jobs: list[Fluid]) -> None:
    found = settle(jobs)
    long = settle(jobs, 16 * found.horizon_s)
    assert utilization(jobs, found) == pytest.approx(utilization(jobs, long), abs=0.01)


def test_short_jobs_that_send_in_turns_still_do_beside_a_long_one() -> None:
    """Two jobs of 10 ms that a time shift keeps apart; had it been lost, both would send at once, for 15 ms."""
    turns = [fluid(0.005, 0.005, {0: 0.005, 1: 0.001}, 0, 8.0, 1e-4, offset_s) for offset_s in (0.0, 0.005)]
    rates = settle([*turns, fluid(3.0, 1.0, {1: 2.5}, 1, 8.0)]).rates
    assert rates[:2] == pytest.approx([1 / 0.0101] * 2, rel=0.01)


@pytest.mark.parametrize("pause_s", [0.0, 0.7])
@pytest.mark.parametrize("levels", [(0, 1), (1, 0), (0, 0)])
def test_iterations_of_milliseconds_are_computed_many_at_a_time_and_nobody_notices(
    levels: tuple[int, int], pause_s: float
) -> None:
    jobs = [fluid(0.004, 0.002, {0: 0.005}, levels[0], 8.0), fluid(3.0, 1.0, {0: 2.5}, levels[1], 8.0, pause_s)]
    found = settle(jobs)
    one_by_one = settle(jobs, 4 * found.horizon_s)
    assert found.rates == pytest.approx(one_by_one.rates, rel=0.01)


@given(fluids(fastest=0.01))
@settings(max_examples=25, deadline=None)
def test_utilisation_beside_much_shorter_iterations_is_that_of_every_one_stepped_through(jobs: list[Fluid]) -> None:
    found = settle(jobs)
    long = settle(jobs, 2 * found.horizon_s)
    assert utilization(jobs, found) == pytest.approx(utilization(jobs, long), abs=0.015)


@given(fluids())
@settings(max_examples=40, deadline=None)
def test_no_job_is_faster_than_alone_and_no_link_carries_more_than_it_can(jobs: list[Fluid]) -> None:
    found = settle(jobs)
    for rate, job in zip(found.rates, jobs, strict=True):
        assert rate <= (1 + 2e-3) / job.period_s
    for link in {link for job in jobs for link in job.loads}:
        carried = sum(rate * job.loads.get(link, 0.0) for rate, job in zip(found.rates, jobs, strict=True))
        assert carried <= 1.02


def test_complements_on_the_same_gpus_make_an_iteration_of_both_in_the_time_of_the_longer() -> None:
    jobs = [fluid(2.0, 2.0, {0: 1.0}, 0, 1.0), fluid(1.0, 1.0, {0: 2.0}, 0, 1.0)]  # Muri's example
    assert settle(jobs, packs=[3, 3]).rates == pytest.approx((1 / 3, 1 / 3), rel=1e-3)


def test_two_of_a_kind_on_the_same_gpus_take_turns() -> None:
    jobs = [fluid(2.0, 2.0, {0: 1.0}, 0, 1.0), fluid(2.0, 2.0, {1: 1.0}, 0, 1.0)]
    assert settle(jobs, packs=[0, 0]).rates == pytest.approx((1 / 4, 1 / 4), rel=1e-3)
    assert settle(jobs, packs=[0, 1]).rates == settle(jobs).rates


def test_jobs_that_only_compute_share_a_gpu_by_turns_and_a_third_elsewhere_does_not_mind() -> None:
    jobs = [fluid(1.0, 1.0, {}, 0, 1.0), fluid(2.0, 2.0, {}, 0, 1.0), fluid(1.5, 1.5, {}, 0, 1.0)]
    assert settle(jobs, packs=[5, 5, -1]).rates == pytest.approx((1 / 3, 1 / 3, 1 / 1.5), rel=5e-3)


@given(fluids(), st.data())
@settings(max_examples=40, deadline=None)
def test_shared_gpus_compute_for_one_job_at_a_time(jobs: list[Fluid], data: st.DataObject) -> None:
    packs = [data.draw(st.integers(-1, 2)) for _ in jobs]
    rates = settle(jobs, 40.0, packs=packs).rates
    for pack in set(packs) - {-1}:
        busy = sum(rate * job.compute_s for rate, job, its in zip(rates, jobs, packs, strict=True) if its == pack)
        assert busy <= 1.0 + 1e-6
        assert all(rate > 0 for rate, its in zip(rates, packs, strict=True) if its == pack)


@given(fluids(), st.lists(st.floats(0.0, 0.999), min_size=12, max_size=12))
@settings(max_examples=50, deadline=None)
def test_a_phase_is_an_offset_of_so_many_iterations(jobs: list[Fluid], phases: list[float]) -> None:
    later = [replace(job, offset_s=phase * job.period_s) for job, phase in zip(jobs, phases, strict=False)]
    states = [state_in_phase(job, phase) for job, phase in zip(jobs, phases, strict=False)]
    assert settle(jobs, 3.0, states).rates == pytest.approx(settle(later, 3.0).rates, abs=1e-6)


@given(fluids())
@settings(max_examples=50, deadline=None)
def test_a_less_urgent_job_changes_nobody_above_it(jobs: list[Fluid]) -> None:
    below = fluid(0.5, 0.2, {link: 0.7 for link in range(5)}, 9, 8.0)
    assert settle([*jobs, below], 3.0).rates[:-1] == pytest.approx(settle(jobs, 3.0).rates, abs=1e-6)


@given(fluids(), st.floats(0.1, 3.0))
@settings(max_examples=50, deadline=None)
def test_a_stretch_ends_when_the_first_job_has_computed_its_quota(jobs: list[Fluid], quota: float) -> None:
    found = settle(jobs, 50.0, quotas=[quota] * len(jobs))
    assert max(rate * found.horizon_s for rate in found.rates) == pytest.approx(quota, abs=1e-6)
    assert found.rates == pytest.approx(settle(jobs, found.horizon_s).rates, abs=1e-6)
