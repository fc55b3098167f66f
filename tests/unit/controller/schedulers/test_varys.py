from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.dataplane.rules import RuleBuilder, plans_of
from controller.decision import ClusterView, JobDeparted, Step, StepStarted
from controller.ecmp_hash import with_default_paths
from controller.schedulers.varys import (
    Coflow,
    Varys,
    VarysPriority,
    allocate,
    effective_bottleneck,
    even_levels,
    port_loads,
    sebf_order,
)
from topologies.fabric import Fabric
from workloads.job import Job

RingMaker = Callable[..., Job]
MixMaker = Callable[[Fabric], list[Job]]

INGRESS, EGRESS = [f"in{i}" for i in range(4)], [f"out{i}" for i in range(4)]
sizes = st.floats(min_value=1.0, max_value=1e12)
flow_lists = st.lists(st.tuples(st.sampled_from(INGRESS), st.sampled_from(EGRESS), sizes), min_size=1, max_size=6)
capacities = st.fixed_dictionaries({port: st.sampled_from([1e9, 25e9, 100e9]) for port in (*INGRESS, *EGRESS)})


def named(lists: list[list[tuple[str, str, float]]]) -> dict[str, Coflow]:
    return {f"c{i}": [(f"c{i}/{k}", *flow) for k, flow in enumerate(flows)] for i, flows in enumerate(lists)}


def used(coflows: Mapping[str, Coflow], rates: Mapping[str, float]) -> dict[str, float]:
    """Port -> sum of the rates through it."""
    total: dict[str, float] = {}
    for coflow in coflows.values():
        for flow, *ports, _ in coflow:
            for port in ports:
                total[port] = total.get(port, 0.0) + rates[flow]
    return total


def test_the_effective_bottleneck_is_the_slowest_port() -> None:
    coflow = [("a", "in0", "out0", 6.0), ("b", "in0", "out1", 2.0), ("c", "in1", "out1", 5.0)]
    capacity = {"in0": 4.0, "in1": 1.0, "out0": 4.0, "out1": 2.0}
    assert effective_bottleneck(port_loads(coflow), capacity) == 5.0
    assert effective_bottleneck(port_loads(coflow), {**capacity, "out0": 0.0}) == float("inf")
    assert effective_bottleneck({}, {}) == 0.0


@settings(max_examples=200, deadline=None)
@given(flow_lists, capacities)
def test_madd_ends_all_flows_of_a_coflow_together(
    flows: list[tuple[str, str, float]], capacity: dict[str, float]
) -> None:
    coflows = named([flows])
    bottleneck = effective_bottleneck(port_loads(coflows["c0"]), capacity)
    for flow, rate in allocate(coflows, capacity, conserve=False).items():
        size = next(entry[3] for entry in coflows["c0"] if entry[0] == flow)
        assert size / rate == pytest.approx(bottleneck)


@settings(max_examples=200, deadline=None)
@given(st.lists(flow_lists, min_size=1, max_size=5), capacities)
def test_madd_ends_each_served_coflow_together_and_holds_the_others(
    lists: list[list[tuple[str, str, float]]], capacity: dict[str, float]
) -> None:
    coflows = named(lists)
    rates = allocate(coflows, capacity, conserve=False)
    for coflow in coflows.values():
        times = {size / rates[flow] if rates[flow] else float("inf") for flow, _, _, size in coflow}
        assert max(times) == pytest.approx(min(times))


@settings(max_examples=200, deadline=None)
@given(st.lists(flow_lists, min_size=1, max_size=5), capacities)
def test_rates_never_exceed_a_port(lists: list[list[tuple[str, str, float]]], capacity: dict[str, float]) -> None:
    coflows = named(lists)
    rates = allocate(coflows, capacity)
    assert all(rate >= 0 for rate in rates.values())
    for port, rate in used(coflows, rates).items():
        assert rate <= capacity[port] * (1 + 1e-12)


@settings(max_examples=200, deadline=None)
@given(st.lists(flow_lists, min_size=1, max_size=5), capacities)
def test_no_flow_waits_while_both_its_ports_are_free(
    lists: list[list[tuple[str, str, float]]], capacity: dict[str, float]
) -> None:
    coflows = named(lists)
    total = used(coflows, allocate(coflows, capacity))
    for coflow in coflows.values():
        for _, ingress, egress, _ in coflow:
            assert max(total[ingress] / capacity[ingress], total[egress] / capacity[egress]) == pytest.approx(1.0)


@settings(max_examples=100, deadline=None)
@given(st.lists(flow_lists, min_size=1, max_size=5), capacities)
def test_the_first_coflow_is_as_fast_as_alone(
    lists: list[list[tuple[str, str, float]]], capacity: dict[str, float]
) -> None:
    coflows = named(lists)
    alone = {name: effective_bottleneck(port_loads(coflow), capacity) for name, coflow in coflows.items()}
    first = min(alone, key=lambda name: alone[name])
    rates = allocate(coflows, capacity)
    assert max(size / rates[flow] for flow, _, _, size in coflows[first]) <= alone[first] * (1 + 1e-9)


def test_a_coflow_that_finds_a_port_taken_is_held_there_and_uses_what_is_free_elsewhere() -> None:
    coflows: dict[str, Coflow] = {
        "long": [("l/0", "in0", "out0", 8.0), ("l/1", "in1", "out1", 8.0)],
        "short": [("s/0", "in0", "out0", 1.0)],
    }
    capacity = dict.fromkeys(("in0", "in1", "out0", "out1"), 1.0)
    assert allocate(coflows, capacity) == {"s/0": 1.0, "l/0": 0.0, "l/1": 1.0}


def test_what_is_left_is_shared_evenly_among_the_flows_of_skipped_coflows() -> None:
    coflows: dict[str, Coflow] = {
        "first": [("f/0", "in0", "out0", 1.0)],
        "a": [("a/0", "in0", "out1", 2.0), ("a/1", "in1", "out1", 2.0)],
        "b": [("b/0", "in0", "out2", 5.0), ("b/1", "in1", "out2", 5.0)],
    }
    rates = allocate(coflows, dict.fromkeys(("in0", "in1", "out0", "out1", "out2"), 1.0))
    assert rates == {"f/0": 1.0, "a/0": 0.0, "a/1": 0.5, "b/0": 0.0, "b/1": 0.5}


def test_ranks_are_split_evenly_over_the_levels() -> None:
    assert list(even_levels("abcd", 2).values()) == [0, 0, 1, 1]
    assert list(even_levels("abc", 8).values()) == [0, 2, 5]
    assert list(even_levels("abcdefgh", 3).values()) == [0, 0, 0, 1, 1, 1, 2, 2]
    assert even_levels("", 3) == {}


# The schedulers


def under_way(fabric: Fabric, jobs: list[Job], remaining: Mapping[str, float], levels: int = 8) -> ClusterView:
    by_name = {job.name: job for job in jobs}
    steps = {
        name: Step(name, 0, 0.0, {flow.id: size for flow in by_name[name].flows}) for name, size in remaining.items()
    }
    return ClusterView(fabric, by_name, levels, steps=steps)


@pytest.fixture
def jobs(small_fabric: Fabric, make_ring: RingMaker) -> list[Job]:
    return [make_ring(f"j{i}", small_fabric, [0, 2], first_port=20000 + 100 * i) for i in range(4)]


def test_the_smaller_step_gets_the_whole_link_and_the_other_waits(small_fabric: Fabric, jobs: list[Job]) -> None:
    view = under_way(small_fabric, jobs, {"j0": 2e9, "j1": 1e9})
    rates = Varys().decide(view, StepStarted("j1", 0)).rates
    assert {rates[flow.id] for flow in jobs[1].flows} == {100e9}
    assert {rates[flow.id] for flow in jobs[0].flows} == {0.0}


def test_of_equal_steps_the_one_that_began_earlier_goes_first(small_fabric: Fabric, jobs: list[Job]) -> None:
    steps = {
        job.name: Step(job.name, 0, started, {flow.id: 1e9 for flow in job.flows})
        for job, started in zip(jobs[:2], (2.0, 1.0), strict=True)
    }
    view = ClusterView(small_fabric, {job.name: job for job in jobs}, steps=steps)
    rates = Varys().decide(view, StepStarted("j0", 0)).rates
    assert {rates[flow.id] for flow in jobs[1].flows} == {100e9}


def test_a_job_without_a_step_has_no_rate(small_fabric: Fabric, jobs: list[Job]) -> None:
    rates = Varys().decide(under_way(small_fabric, jobs, {"j1": 1e9}), JobDeparted("j9")).rates
    assert rates.keys() == {flow.id for flow in jobs[1].flows}


def test_rates_keep_within_the_host_links_of_clos96(clos96_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = [make_ring(f"j{i}", clos96_fabric, list(range(i, 12, 2 + i)), first_port=20000 + 100 * i) for i in range(3)]
    view = under_way(clos96_fabric, jobs, {"j0": 3e9, "j1": 1e9, "j2": 2e9})
    rates = Varys().decide(view, StepStarted("j2", 0)).rates
    total: dict[str, float] = {}
    for flow in view.flows:
        for link in (clos96_fabric.uplink(flow.source).name, clos96_fabric.uplink(flow.target).reverse):
            total[link] = total.get(link, 0.0) + rates[flow.id]
    assert max(rate / clos96_fabric.links[link].capacity for link, rate in total.items()) == pytest.approx(1.0)


def test_as_levels_the_smallest_bottleneck_comes_first(small_fabric: Fabric, jobs: list[Job]) -> None:
    view = under_way(small_fabric, jobs, {"j0": 4e9, "j1": 1e9, "j2": 2e9, "j3": 3e9}, levels=2)
    decision = VarysPriority().decide(view, StepStarted("j2", 0))
    assert decision.levels == {"j1": 0, "j2": 0, "j3": 1, "j0": 1}
    assert decision.sender_marked and not decision.rates


def test_whole_iterations_are_ordered_by_their_bottleneck(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = [make_ring(f"j{i}", small_fabric, [0, 2], size=size) for i, size in enumerate((3e9, 1e9, 3e9))]
    assert sebf_order(small_fabric, jobs) == ("j1", "j0", "j2")


@pytest.mark.parametrize("scheduler", [Varys(), VarysPriority()])
def test_the_switches_can_hold_every_decision(
    clos96_fabric: Fabric, make_mix: MixMaker, scheduler: Varys | VarysPriority
) -> None:
    view = under_way(clos96_fabric, make_mix(clos96_fabric), {"job0": 2e9, "job1": 1e9})
    decision = with_default_paths(view, scheduler.decide(view, StepStarted("job0", 0)))
    plans = plans_of(RuleBuilder(clos96_fabric), clos96_fabric, view.flows, decision, view.level_count)
    assert plans.keys() == {flow.id for flow in view.flows}
