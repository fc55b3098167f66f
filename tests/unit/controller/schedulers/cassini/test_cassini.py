"""CASSINI as a scheduler: demands, the affinity graph, and decisions on fabrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.decision import ClusterView, Decision, JobArrived
from controller.ecmp_hash import ecmp_path
from controller.schedulers.cassini.affinity_graph import SharedLink, time_shifts, without_loops
from controller.schedulers.cassini.link_demand import Arc, demand_of
from controller.schedulers.cassini.scheduler import Cassini
from testbed.api import prepare
from topologies.fabric import Fabric
from workloads.job import Job, Phase, Transfer

RingMaker = Callable[..., Job]


def decide(view: ClusterView, **options: Any) -> Decision:
    return Cassini(**options).decide(view, JobArrived("any"))


def view_of(fabric: Fabric, *jobs: Job, seed: int = 1) -> ClusterView:
    return ClusterView(fabric, {job.name: job for job in jobs}, seed=seed)


@pytest.fixture
def meeting(small_fabric: Fabric, make_ring: RingMaker) -> Callable[..., ClusterView]:
    """Two ring jobs that share a link above the ToRs: 1 GB at 100 Gb/s takes 80 ms."""

    def build(compute_s: float = 0.08, **others: Any) -> ClusterView:
        first = make_ring("a", small_fabric, [0, 2], size=1e9, compute_s=compute_s)
        second = make_ring("b", small_fabric, [1, 3], **{"size": 1e9, "compute_s": compute_s, **others})
        for seed in range(100):
            view = view_of(small_fabric, first, second, seed=seed)
            paths = [set(ecmp_path(small_fabric, flow, seed)) for flow in (first.flows[0], second.flows[0])]
            if paths[0] & paths[1]:
                return view
        raise AssertionError("no seed makes the two meet")

    return build


def test_two_jobs_that_send_half_the_time_are_shifted_by_half_a_period(meeting: Callable[..., ClusterView]) -> None:
    decision = decide(meeting())
    assert decision.shifts == pytest.approx({"a": 0.0, "b": 0.08})
    assert decision.periods == pytest.approx({"a": 0.16, "b": 0.16})


def test_only_shifts_and_periods_are_decided(meeting: Callable[..., ClusterView]) -> None:
    decision = decide(meeting())
    assert (decision.paths, decision.levels, decision.rates) == ({}, {}, {})


def test_jobs_that_start_out_of_step_are_left_alone(meeting: Callable[..., ClusterView]) -> None:
    view = meeting()
    late = replace(view.jobs["b"], start_s=10 * 0.16 + 0.08)
    decision = decide(replace(view, jobs={"a": view.jobs["a"], "b": late}))
    assert (decision.shifts, decision.periods) == ({}, {})


def test_a_period_that_is_a_little_shorter_is_rounded_up_and_reported(meeting: Callable[..., ClusterView]) -> None:
    decision = decide(meeting(compute_s=0.08, size=0.995e9))
    assert decision.periods == pytest.approx({"a": 0.16, "b": 0.16})
    assert decision.notes["periods"]["b"] == pytest.approx({"alone_s": 0.1596, "kept_s": 0.16})  # type: ignore[index]


def test_where_no_shift_helps_nothing_is_shifted_and_the_link_is_on_record(
    meeting: Callable[..., ClusterView],
) -> None:
    # Periods of 160 and 240 ms; the first sends for 80 ms, their common divisor.
    decision = decide(three_halves(meeting()))
    assert (decision.shifts, decision.periods) == ({}, {})
    [first, *_] = decision.notes["links"]  # type: ignore[misc]
    assert first["use"] == "no gain" and first["copies"] == [3, 2]
    assert first["score"] == pytest.approx(0.75) and first["perimeter_s"] == pytest.approx(0.48)


def three_halves(view: ClusterView) -> ClusterView:
    """The second job half as long again in everything."""
    job = view.jobs["b"]
    longer = replace(
        job,
        phases=tuple(
            replace(
                phase,
                compute_s=1.5 * phase.compute_s,
                transfers=tuple(replace(one, bytes=1.5 * one.bytes) for one in phase.transfers),
            )
            for phase in job.phases
        ),
    )
    return replace(view, jobs={"a": view.jobs["a"], "b": longer})


def test_jobs_that_share_no_link_are_not_shifted(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = make_ring("a", small_fabric, [0, 1]), make_ring("b", small_fabric, [2, 3])
    assert decide(view_of(small_fabric, *jobs)) == Decision(notes={"profile": "declared", "periods": {}, "links": []})


def test_a_cluster_without_jobs_has_no_shifts(small_fabric: Fabric) -> None:
    assert decide(view_of(small_fabric)).shifts == {}


def test_a_job_sends_after_its_compute_at_the_rate_of_its_most_loaded_link(
    small_fabric: Fabric, make_ring: RingMaker
) -> None:
    job = make_ring("a", small_fabric, [0, 1], size=1e9, compute_s=1.0, overlap=0.5)
    smaller = replace(job.flows[1], bytes=0.5e9)
    transfers = (Transfer(job.flows[0].id, 1e9), Transfer(smaller.id, 0.5e9))
    job = replace(job, flows=(job.flows[0], smaller), phases=(Phase(1.0, 0.5, "allreduce", transfers),) * 2)
    demand = demand_of(job, small_fabric, {flow.id: ecmp_path(small_fabric, flow, 1) for flow in job.flows})
    assert demand.iteration_s == pytest.approx(2.0)
    arcs = demand.arcs[small_fabric.uplink(job.flows[0].source).name]
    assert arcs == (Arc(0.5, 0.58, 1.0), Arc(1.5, 1.58, 1.0))
    assert [arc.share for arc in demand.arcs[small_fabric.uplink(smaller.source).name]] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("scenario", ["clos96", "clos96-ports", "moe-alltoall", "double-sided"])
def test_decisions_on_the_bundled_jobs_are_repeatable_json_ready_and_within_the_period(scenario: str) -> None:
    experiment = prepare(scenario, schedulers=["ecmp"]).experiments[0]
    for seed in (1, 2, 3):
        view = view_of(experiment.fabric, *experiment.jobs, seed=seed)
        decision = decide(view)
        assert repr(decision) == repr(decide(view))
        assert decision.shifts.keys() == decision.periods.keys() <= view.jobs.keys()
        assert all(0 <= decision.shifts[job] < period for job, period in decision.periods.items())
        json.dumps(decision.notes)
        for job, found in decision.notes["periods"].items():  # type: ignore[attr-defined]
            assert found["alone_s"] * (1 - 1e-8) <= found["kept_s"] <= found["alone_s"] * 1.0101, job


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0}, "option 'step' of cassini must be a number from 0.5 to 90, not '0'"),
        ({"step": True}, "option 'step' of cassini must be a number from 0.5 to 90, not 'True'"),
        ({"grid": "1%"}, "option 'grid' of cassini must be a number from 0.001 to 0.1, not '1%'"),
    ],
)
def test_an_option_out_of_range_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        Cassini(**options)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[SharedLink], dict[str, Fraction]]:
    """Links that join jobs without a loop, with turns and periods as fractions."""
    count = draw(st.integers(2, 8))
    numbers = st.fractions(0, 10, max_denominator=20)
    periods = {f"j{index}": draw(st.integers(1, 6)) * Fraction(1, 4) for index in range(count)}
    links, joined = [], 1
    while joined < count:
        size = draw(st.integers(1, min(3, count - joined)))
        members = [f"j{draw(st.integers(0, joined - 1))}", *(f"j{joined + index}" for index in range(size))]
        links.append(SharedLink(f"l{len(links)}", {job: draw(numbers) for job in members}))  # type: ignore[misc]
        joined += size
    return draw(st.permutations(links)), periods


def off(difference: float, modulus: Fraction) -> float:
    """How far ``difference`` is from a multiple of ``modulus``."""
    rest = difference % float(modulus)
    return min(rest, float(modulus) - rest)


def common_divisor(one: Fraction, two: Fraction) -> Fraction:
    while two:
        one, two = two, one % two
    return one


@given(trees())
@settings(max_examples=100)
def test_shifts_without_loops_agree_with_every_link(case: tuple[list[SharedLink], dict[str, Fraction]]) -> None:
    # Delaying a job by its own period changes nothing, so two jobs stand to each other as the link asks if
    # their shifts differ by what it asks plus whole periods of either: multiples of the common divisor.
    links, periods = case
    assert without_loops(links)[1] == ()
    shifts = time_shifts(list(periods), links, periods, {})  # type: ignore[arg-type]
    assert shifts.keys() == periods.keys()
    for link in links:
        for one in link.turns_s:
            for two in link.turns_s:
                asked = link.turns_s[one] - link.turns_s[two]
                modulus = common_divisor(periods[one], periods[two])
                assert off(float(shifts[one] - shifts[two] - asked), modulus) < 1e-9


@given(trees())
@settings(max_examples=50)
def test_with_equal_periods_shifts_agree_modulo_the_perimeter(
    case: tuple[list[SharedLink], dict[str, Fraction]],
) -> None:
    links, periods = case
    shifts = time_shifts(list(periods), links, dict.fromkeys(periods, 2.0), {})
    for link in links:
        first, *others = link.turns_s
        for other in others:
            asked = link.turns_s[other] - link.turns_s[first]
            assert off(float(shifts[other] - shifts[first] - asked), Fraction(2)) < 1e-9


def test_of_a_loop_the_link_that_needs_shifts_least_is_dropped() -> None:
    links = [
        SharedLink("x", {"a": 0.0, "b": 0.1}, unshifted=0.5),
        SharedLink("y", {"b": 0.0, "c": 0.1}, unshifted=0.9),
        SharedLink("z", {"a": 0.0, "c": 0.1}, unshifted=0.7),
    ]
    kept, dropped = without_loops(links)
    assert [link.name for link in kept] == ["x", "z"]
    assert [link.name for link in dropped] == ["y"]


def test_two_links_between_the_same_two_jobs_are_a_loop() -> None:
    links = [SharedLink(name, {"a": 0.0, "b": 0.1}) for name in ("x", "y")]
    assert [link.name for link in without_loops(links)[1]] == ["y"]


def test_the_job_that_arrived_first_stays_where_it_started() -> None:
    links = [SharedLink("x", {"b": 0.0, "a": 0.3})]
    shifts = time_shifts(["a", "b"], links, {"a": 1.0, "b": 1.0}, {"a": 2.5})
    assert shifts == pytest.approx({"a": 0.5, "b": 0.2})
