"""Jobs that settle over several calls, as a replay stops at every event of the cluster."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx, raises

from testbed.fluid.fluids import Contention
from testbed.fluid.steady_state import Settling, settle
from workloads.periodic_job import PeriodicJob


@st.composite
def groups(draw: st.DrawFn) -> Contention:
    made = []
    for _ in range(draw(st.integers(2, 6))):
        compute_s = draw(st.floats(0.1, 2.0))
        links = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True))
        loads = {link: draw(st.floats(0.05, 1.5)) for link in links}
        gpus, level = draw(st.sampled_from([1.0, 8.0, 64.0])), draw(st.integers(0, 3))
        made.append(PeriodicJob(compute_s, compute_s * draw(st.floats(0.0, 1.0)), loads, gpus, 0.0, level))
    return Contention.of(made)


def busy(group: Contention, rates: tuple[float, ...]) -> float:
    return sum(rate * job.compute_s * job.gpus for rate, job in zip(rates, group.jobs, strict=True))


@given(groups(), st.floats(0.3, 20.0))
@settings(max_examples=30, deadline=None)
def test_stopping_on_the_way_does_not_change_what_jobs_settle_to_or_when(group: Contention, every_s: float) -> None:
    at_once, stepwise = settle(group), Settling(group)
    calls = 1
    while not (found := stepwise.advance(every_s)).lasting:
        calls += 1
    assert found.horizon_s == approx(at_once.horizon_s)
    assert (calls - 1) * every_s <= found.horizon_s + 1e-6 <= calls * every_s + 2e-6
    assert busy(group, found.rates) == approx(busy(group, at_once.rates), rel=1e-6)


@given(groups(), st.floats(0.3, 5.0))
@settings(max_examples=30, deadline=None)
def test_until_they_have_settled_each_call_gives_the_average_over_just_its_seconds(
    group: Contention, every_s: float
) -> None:
    stepwise = Settling(group)
    found = [stepwise.advance(every_s) for _ in range(3)]
    if not found[-1].lasting:
        whole = settle(group, 3 * every_s)
        for place, rate in enumerate(whole.rates):
            assert sum(each.rates[place] for each in found) == approx(3 * rate, abs=1e-6)


def test_what_has_settled_stays_so_at_no_cost() -> None:
    group = Contention.of([PeriodicJob(1.0, 1.0, {0: 1.0}), PeriodicJob(1.0, 1.0, {0: 1.0}, offset_s=0.5)])
    settling = Settling(group)
    first = settling.advance()
    assert first.lasting and settling.advance(3.0) is first


def test_no_time_is_too_short_to_settle_in() -> None:
    with raises(ValueError, match="rates need a time above 0 s to settle in, not 0 s"):
        Settling(Contention.of([PeriodicJob(1.0, 1.0, {0: 1.0})])).advance(0.0)
