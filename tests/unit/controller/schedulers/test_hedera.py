from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.dataplane.rules import RuleBuilder, plans_of
from controller.decision import ClusterView, JobArrived
from controller.ecmp_hash import with_default_paths
from controller.schedulers.hedera import Hedera, PortPair, estimate_demands, first_fit
from topologies.clos import clos
from topologies.fabric import Fabric, Path
from workloads.job import Flow, Job

RingMaker = Callable[..., Job]
MixMaker = Callable[[Fabric], list[Job]]

SOURCES, TARGETS = "ABCDE", "abcde"
SMALL = clos(hosts=4, gpus_per_host=2, nics_per_host=1, tors=2, aggregations=2, port_rate=100e9, fabric_rate=100e9)
UNIT = dict.fromkeys(SOURCES + TARGETS, 1.0)
port_pairs = st.lists(st.tuples(st.sampled_from(SOURCES), st.sampled_from(TARGETS)), min_size=1, max_size=20)
capacities = st.fixed_dictionaries({port: st.sampled_from([0.5, 1.0, 2.0]) for port in SOURCES + TARGETS})


def max_min(pairs: list[PortPair], capacity: Mapping[str, float]) -> list[float]:
    """Rates by filling: all rise together until a port is full."""
    left, rates, rising = dict(capacity), [0.0] * len(pairs), set(range(len(pairs)))
    while rising:
        count: dict[str, int] = {}
        for index in rising:
            for port in pairs[index]:
                count[port] = count.get(port, 0) + 1
        step = min(left[port] / flows for port, flows in count.items())
        for index in rising:
            rates[index] += step
        for port, flows in count.items():
            left[port] -= step * flows
        full = {port for port in count if left[port] < 1e-9}
        rising = {index for index in rising if full.isdisjoint(pairs[index])}
    return rates


# The estimator


def test_flows_of_one_source_share_it() -> None:
    assert estimate_demands([("A", "b"), ("A", "c"), ("A", "d")], UNIT) == pytest.approx([1 / 3] * 3)


def test_a_full_target_limits_and_the_source_gives_the_rest_to_others() -> None:
    demands = estimate_demands([("A", "c"), ("B", "c"), ("B", "d")], UNIT)
    assert demands == pytest.approx([1 / 2, 1 / 2, 1 / 2])
    demands = estimate_demands([("A", "c"), ("B", "c"), ("D", "c"), ("D", "d")], UNIT)
    assert demands == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3])


def test_a_flow_that_its_source_holds_back_leaves_its_share_to_the_others() -> None:
    demands = estimate_demands([("A", "e"), ("A", "b"), ("A", "c"), ("A", "d"), ("B", "e")], UNIT)
    assert demands == pytest.approx([1 / 4, 1 / 4, 1 / 4, 1 / 4, 3 / 4])


def test_four_hosts_with_all_kinds_of_limits_come_out_as_max_min_shares() -> None:
    pairs = [("A", "b"), ("A", "c"), ("A", "d"), ("B", "a"), ("B", "a"), ("B", "c"), ("C", "a"), ("C", "d")]
    pairs += [("D", "b"), ("D", "b")]
    third = 1 / 3
    expected = [third, third, third, third, third, third, third, 2 * third, third, third]
    assert estimate_demands(pairs, UNIT) == pytest.approx(expected)


@settings(max_examples=200, deadline=None)
@given(port_pairs, capacities)
def test_the_estimate_is_max_min_fair_among_flows_that_only_ports_limit(
    pairs: list[PortPair], capacity: dict[str, float]
) -> None:
    assert estimate_demands(pairs, capacity) == pytest.approx(max_min(pairs, capacity), abs=1e-6)


# First fit


def flow(name: str, source: str, target: str) -> Flow:
    return Flow(name, "job", f"{source}n0p0", f"{target}n0p0", 1e9, 20000, 5000)


def middle(path: Path) -> str:
    return path[1].removeprefix("tor0->")


def test_a_flow_takes_the_first_path_with_room(small_fabric: Fabric) -> None:
    flows = [flow("a", "h0", "h2"), flow("b", "h0", "h3"), flow("c", "h1", "h2"), flow("d", "h1", "h3")]
    paths = first_fit(small_fabric, [(found, 50e9) for found in flows])
    assert [middle(paths[name]) for name in "abcd"] == ["agg0", "agg0", "agg1", "agg1"]


def test_what_is_reserved_is_not_given_twice(small_fabric: Fabric) -> None:
    paths = first_fit(small_fabric, [(flow("a", "h0", "h2"), 60e9), (flow("b", "h1", "h3"), 60e9)])
    assert [middle(paths[name]) for name in "ab"] == ["agg0", "agg1"]


def test_a_flow_that_fits_nowhere_is_left_out_and_reserves_nothing(small_fabric: Fabric) -> None:
    wanted = [("a", 80e9), ("b", 30e9), ("c", 20e9)]
    paths = first_fit(small_fabric, [(flow(name, "h0", "h2"), demand) for name, demand in wanted])
    assert {name: middle(path) for name, path in paths.items()} == {"a": "agg0", "c": "agg0"}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.floats(1e9, 100e9)), max_size=20))
def test_no_link_is_reserved_beyond_its_capacity(wanted: list[tuple[int, int, float]]) -> None:
    fabric = SMALL
    demands = [(flow(str(i), f"h{h}", f"h{(h + off) % 4}"), demand) for i, (h, off, demand) in enumerate(wanted)]
    paths = first_fit(fabric, demands)
    reserved: dict[str, float] = {}
    for found, demand in demands:
        for link in paths.get(found.id, ()):
            reserved[link] = reserved.get(link, 0.0) + demand
    assert all(rate <= fabric.links[link].capacity * (1 + 1e-6) for link, rate in reserved.items())


# The scheduler


def view_of(fabric: Fabric, *jobs: Job) -> ClusterView:
    return ClusterView(fabric, {job.name: job for job in jobs})


def test_big_flows_of_two_jobs_get_a_link_each(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = make_ring("a", small_fabric, [0, 2]), make_ring("b", small_fabric, [1, 3], first_port=30000)
    paths = Hedera().decide(view_of(small_fabric, *jobs), JobArrived("b")).paths
    assert middle(paths["a/0/0"]) == "agg0" and middle(paths["b/0/0"]) == "agg1"


def test_small_flows_keep_their_hashed_path(small_fabric: Fabric) -> None:
    flows = tuple(Flow(f"s{i}", "s", "h0n0p0", "h2n0p0", 1e9, 20000 + i, 5000) for i in range(10))
    job = Job("s", "test", ("h0g0", "h2g0"), (), flows, 1e15, 10)
    view = view_of(small_fabric, job)
    assert Hedera().decide(view, JobArrived("s")).paths == {}
    assert Hedera(threshold=0.09).decide(view, JobArrived("s")).paths.keys() == {found.id for found in flows}


def test_a_flow_without_bytes_is_not_counted(small_fabric: Fabric) -> None:
    flows = tuple(Flow(f"s{i}", "s", "h0n0p0", "h2n0p0", 1e9 if i < 2 else 0.0, 20000 + i, 5000) for i in range(10))
    view = view_of(small_fabric, Job("s", "test", ("h0g0", "h2g0"), (), flows, 1e15, 10))
    assert Hedera().decide(view, JobArrived("s")).paths.keys() == {"s0", "s1"}


def test_paths_are_valid_and_visit_no_node_twice(any_fabric: Fabric, make_mix: MixMaker) -> None:
    view = view_of(any_fabric, *make_mix(any_fabric))
    flows = {found.id: found for found in view.flows}
    decision = Hedera().decide(view, JobArrived("job0"))
    assert decision.paths
    for name, path in decision.paths.items():
        nodes = [any_fabric.links[path[0]].source, *(any_fabric.links[link].target for link in path)]
        assert (nodes[0], nodes[-1]) == (flows[name].source, flows[name].target)
        assert all(any_fabric.links[link].source == node for link, node in zip(path, nodes, strict=False))
        assert len(set(nodes)) == len(nodes)


def test_the_switches_can_hold_every_decision(clos96_fabric: Fabric, make_mix: MixMaker) -> None:
    view = view_of(clos96_fabric, *make_mix(clos96_fabric))
    decision = with_default_paths(view, Hedera().decide(view, JobArrived("job1")))
    plans = plans_of(RuleBuilder(clos96_fabric), clos96_fabric, view.flows, decision, view.level_count)
    assert plans.keys() == {found.id for found in view.flows}


@pytest.mark.parametrize("threshold", [1.0, -0.1, True, "10%"])
def test_a_wrong_threshold_is_refused_in_one_line(threshold: object) -> None:
    with pytest.raises(ValueError, match=f"'threshold' of hedera must be a number .* not '{threshold}'"):
        Hedera(threshold=threshold)  # type: ignore[arg-type]
