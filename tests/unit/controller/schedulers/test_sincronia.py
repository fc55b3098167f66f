from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random

import pytest
from greedy_rates import greedy_rates

from controller.dataplane.rules import RuleBuilder, plans_of
from controller.decision import ClusterView, JobArrived, JobDeparted, Step, StepEnded, StepStarted
from controller.ecmp_hash import with_default_paths
from controller.schedulers.common.coflows import iteration_demands
from controller.schedulers.sincronia import Sincronia, bssi, sincronia_order
from topologies.fabric import Fabric
from workloads.job import Flow, Job, Phase, Transfer

RingMaker = Callable[..., Job]
Demands = dict[int, dict[int, Fraction]]


class Tied(Exception):
    pass


def only(candidates: list[int], key: Callable[[int], Fraction]) -> int:
    """The one candidate with the largest key; raises if it is not the only one."""
    best = max(key(candidate) for candidate in candidates)
    found = [candidate for candidate in candidates if key(candidate) == best]
    if len(found) > 1:
        raise Tied
    return found[0]


def exact_order(demands: Demands, weights: Mapping[int, Fraction]) -> list[int]:
    """BSSI in its dual form: a price per round and port instead of scaled weights."""
    left, order = list(demands), list[int]()
    prices: list[tuple[Fraction, int]] = []
    ports = sorted({port for demand in demands.values() for port in demand})

    def slack(coflow: int) -> Fraction:
        paid = sum((price * demands[coflow].get(port, Fraction(0)) for price, port in prices), Fraction(0))
        return weights[coflow] - paid

    while len(left) > 1:
        port = only(ports, lambda p: sum((demands[c].get(p, Fraction(0)) for c in left), Fraction(0)))
        users = [c for c in left if demands[c].get(port)]
        last = only(users, lambda c: -slack(c) / demands[c][port])  # noqa: B023
        prices.append((slack(last) / demands[last][port], port))
        left.remove(last)
        order.insert(0, last)
    return left + order


def random_instance(random: Random) -> tuple[Demands, dict[int, Fraction]]:
    ports, count = random.randint(2, 8), random.randint(2, 8)
    demands: Demands = {}
    for coflow in range(count):
        used = random.sample(range(ports), random.randint(1, ports))
        demands[coflow] = {port: Fraction(random.randint(1, 10**6)) for port in used}
    return demands, {coflow: Fraction(random.randint(1, 1000)) for coflow in demands}


def tie_free_instances(count: int) -> list[tuple[Demands, dict[int, Fraction], list[int]]]:
    random, found = Random(7), list[tuple[Demands, dict[int, Fraction], list[int]]]()
    while len(found) < count:
        demands, weights = random_instance(random)
        try:
            found.append((demands, weights, exact_order(demands, weights)))
        except Tied:
            continue
    return found


def test_a_thousand_tie_free_orders_equal_those_of_an_exact_implementation() -> None:
    for demands, weights, expected in tie_free_instances(1000):
        assert list(bssi(demands, weights)) == expected
        floats = {coflow: {port: float(size) for port, size in demand.items()} for coflow, demand in demands.items()}
        assert list(bssi(floats, {coflow: float(weight) for coflow, weight in weights.items()})) == expected


def test_at_one_port_the_largest_goes_last() -> None:
    assert bssi({"big": {"p": 9.0}, "small": {"p": 1.0}, "middle": {"p": 5.0}}) == ("small", "middle", "big")


def test_a_weight_buys_an_earlier_place() -> None:
    demands = {"big": {"p": 9.0}, "small": {"p": 1.0}}
    assert bssi(demands, {"big": 10.0, "small": 1.0}) == ("big", "small")


def test_of_equals_the_one_that_came_later_goes_last() -> None:
    assert bssi({name: {"p": 1.0} for name in ("b", "a", "c")}) == ("b", "a", "c")


def test_a_coflow_without_demand_has_no_place() -> None:
    assert bssi({"quiet": {"p": 0.0}, "nothing": {}, "one": {"p": 1.0}}) == ("one",)


def test_equal_ports_are_taken_in_the_order_of_the_option() -> None:
    demands = {"a": {"p": 2.0}, "b": {"q": 2.0}}
    assert bssi(demands, ties=("q", "p")) == ("a", "b")
    assert bssi(demands, ties=("p", "q")) == ("b", "a")


def test_the_greedy_schedule_gives_whole_ports_in_order() -> None:
    flows = {"x": {"x1": ("i1", "o1"), "x2": ("i1", "o2")}, "y": {"y1": ("i2", "o2"), "y2": ("i2", "o1")}}
    capacity = {"i1": 2.0, "i2": 1.0, "o1": 3.0, "o2": 3.0}
    assert greedy_rates(("x", "y"), flows, capacity) == {"x1": 2.0, "x2": 0.0, "y1": 1.0, "y2": 0.0}


# The scheduler


def under_way(fabric: Fabric, jobs: list[Job], remaining: Mapping[str, float], levels: int = 8) -> ClusterView:
    """A view in which every job of ``remaining`` has a step with that many bytes left on each flow."""
    by_name = {job.name: job for job in jobs}
    steps = {
        name: Step(name, 0, 0.0, {flow.id: size for flow in by_name[name].flows}) for name, size in remaining.items()
    }
    return ClusterView(fabric, by_name, levels, steps=steps)


@pytest.fixture
def jobs(small_fabric: Fabric, make_ring: RingMaker) -> list[Job]:
    return [make_ring(f"j{i}", small_fabric, [0, 2], first_port=20000 + 100 * i) for i in range(4)]


def test_the_step_with_the_least_left_is_served_first(small_fabric: Fabric, jobs: list[Job]) -> None:
    view = under_way(small_fabric, jobs, {"j0": 3e9, "j1": 1e9, "j2": 2e9})
    assert Sincronia().decide(view, StepStarted("j2", 0)).levels == {"j1": 0, "j2": 1, "j0": 2}


def test_the_last_level_is_shared_by_all_that_are_left(small_fabric: Fabric, jobs: list[Job]) -> None:
    view = under_way(small_fabric, jobs, {"j0": 3e9, "j1": 1e9, "j2": 2e9, "j3": 4e9}, levels=3)
    assert Sincronia().decide(view, StepStarted("j2", 0)).levels == {"j1": 0, "j2": 1, "j0": 2, "j3": 2}


def test_a_job_between_two_steps_is_at_the_lowest_level(small_fabric: Fabric, jobs: list[Job]) -> None:
    view = under_way(small_fabric, jobs, {"j1": 1e9})
    decision = Sincronia().decide(view, StepEnded("j0", 0))
    assert {decision.level_of(flow, 7) for flow in jobs[0].flows} == {7}
    assert {decision.level_of(flow, 7) for flow in jobs[1].flows} == {0}


def test_a_step_with_nothing_left_takes_no_level(small_fabric: Fabric, jobs: list[Job]) -> None:
    view = under_way(small_fabric, jobs, {"j0": 0.0, "j1": 1e9})
    assert Sincronia().decide(view, StepStarted("j1", 0)).levels == {"j1": 0}


def test_without_steps_there_is_nothing_to_decide(small_fabric: Fabric, jobs: list[Job]) -> None:
    decision = Sincronia().decide(under_way(small_fabric, jobs, {}), JobArrived("j0"))
    assert decision.levels == {} and decision.sender_marked


def test_it_listens_to_steps_and_jobs() -> None:
    assert {JobArrived, JobDeparted, StepStarted, StepEnded} == Sincronia.events


def test_flows_between_the_same_ports_add_up(small_fabric: Fabric, make_ring: RingMaker) -> None:
    single = make_ring("single", small_fabric, [0, 2], size=3e9)
    flows = tuple(
        Flow(f"double/{i}", "double", flow.source, flow.target, 2e9, 30000 + i, 5000)
        for i, flow in enumerate(flow for flow in single.flows for _ in range(2))
    )
    phase = Phase(1.0, 0.0, "allreduce", tuple(Transfer(flow.id, flow.bytes) for flow in flows))
    double = Job("double", "test", single.gpus, (phase,), flows, 1e15, 10)
    loads = iteration_demands(small_fabric, [double, single])
    assert loads["double"] == pytest.approx({link: 8 * 4e9 / 100e9 for link in loads["single"]})
    assert sincronia_order(small_fabric, [double, single]) == ("single", "double")


def test_what_is_kept_per_job_changes_no_decision(small_fabric: Fabric, make_ring: RingMaker, jobs: list[Job]) -> None:
    scheduler = Sincronia()
    scheduler.decide(under_way(small_fabric, jobs, {"j0": 1e9, "j1": 2e9}), StepStarted("j0", 0))
    moved = [make_ring("j0", small_fabric, [1, 3]), make_ring("j1", small_fabric, [1, 3], first_port=30000)]
    view = under_way(small_fabric, moved, {"j0": 2e9, "j1": 1e9})
    assert scheduler.decide(view, StepStarted("j0", 0)) == Sincronia().decide(view, StepStarted("j0", 0))


def test_the_switches_can_hold_every_decision(clos96_fabric: Fabric, make_mix: Callable[[Fabric], list[Job]]) -> None:
    mixed = make_mix(clos96_fabric)
    view = under_way(clos96_fabric, mixed, {"job0": 2e9, "job1": 1e9})
    decision = with_default_paths(view, Sincronia().decide(view, StepStarted("job0", 0)))
    plans = plans_of(RuleBuilder(clos96_fabric), clos96_fabric, view.flows, decision, view.level_count)
    assert plans.keys() == {flow.id for flow in view.flows}
