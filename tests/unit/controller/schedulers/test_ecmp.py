from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decision import ClusterView, Decision, JobArrived
from controller.ecmp_hash import ecmp_path, hash_at, with_default_paths
from controller.schedulers.ecmp import Ecmp, EcmpSwitch
from topologies.clos import clos96
from topologies.fabric import Fabric
from workloads.job import Flow, Job

CLOS96 = clos96()


def flow_with(source_port: int) -> Flow:
    return Flow(f"f{source_port}", "job", "h0n0p0", "h2n0p0", 1.0, source_port, 5000)


@given(st.integers(1, 10), st.integers(1024, 65535), st.sampled_from(["h2n0p0", "h1n3p0", "h0n1p0"]))
def test_the_hashed_path_is_always_a_candidate(seed: int, source_port: int, target: str) -> None:
    flow = Flow("f", "job", "h0n0p0", target, 1.0, source_port, 5000)
    assert ecmp_path(CLOS96, flow, seed) in CLOS96.candidate_paths("h0n0p0", target)


def test_source_ports_spread_evenly_over_the_uplinks() -> None:
    taken = Counter(ecmp_path(CLOS96, flow_with(port), 1) for port in range(10_000, 14_000))
    chi_square = sum((count - 500) ** 2 / 500 for count in taken.values())
    assert len(taken) == 8
    assert chi_square < 24.3  # 7 degrees of freedom, p = 0.001


def test_seeds_spread_one_flow_evenly_over_the_uplinks() -> None:
    taken = Counter(ecmp_path(CLOS96, flow_with(10_000), seed) for seed in range(4_000))
    assert sum((count - 500) ** 2 / 500 for count in taken.values()) < 24.3


def test_eight_flows_on_eight_paths_hardly_ever_miss_each_other() -> None:
    flows = [flow_with(port) for port in range(10_000, 10_008)]
    free = sum(len({ecmp_path(CLOS96, flow, seed) for flow in flows}) == 8 for seed in range(1_000))
    assert free < 15  # 0.24 % expected


def test_switches_do_not_hash_alike() -> None:
    pairs = Counter((hash_at(0, str(key), 1, 2), hash_at(9, str(key), 1, 2)) for key in range(2_000))
    assert all(abs(count - 500) < 100 for count in pairs.values())


def test_a_flow_below_one_tor_keeps_its_only_path(clos96_fabric: Fabric) -> None:
    flow = Flow("f", "job", "h0n0p0", "h1n0p0", 1.0, 10_000, 5000)
    assert ecmp_path(clos96_fabric, flow, 1) == ("h0n0p0->tor0", "tor0->h1n0p0")


def view_of(fabric: Fabric, jobs: list[Job], seed: int = 1) -> ClusterView:
    return ClusterView(fabric, {job.name: job for job in jobs}, seed=seed)


def test_ecmp_decides_a_path_for_every_flow_and_no_level(
    clos96_fabric: Fabric, make_mix: Callable[[Fabric], list[Job]]
) -> None:
    view = view_of(clos96_fabric, make_mix(clos96_fabric))
    decision = Ecmp().decide(view, JobArrived("job0"))
    assert decision.paths.keys() == {flow.id for flow in view.flows}
    assert not decision.levels


def test_another_seed_gives_other_paths(clos96_fabric: Fabric, make_mix: Callable[[Fabric], list[Job]]) -> None:
    jobs = make_mix(clos96_fabric)
    one, two = (Ecmp().decide(view_of(clos96_fabric, jobs, seed=seed), JobArrived("job0")) for seed in (1, 2))
    assert one.paths != two.paths


def test_an_own_seed_overrides_the_views(clos96_fabric: Fabric, make_mix: Callable[[Fabric], list[Job]]) -> None:
    jobs = make_mix(clos96_fabric)
    own = Ecmp(seed=2).decide(view_of(clos96_fabric, jobs, seed=1), JobArrived("job0"))
    assert own == Ecmp().decide(view_of(clos96_fabric, jobs, seed=2), JobArrived("job0"))


def test_ecmp_switch_leaves_the_flows_that_have_a_choice_to_the_switches(
    clos96_fabric: Fabric, make_ring: Callable[..., Job]
) -> None:
    view = view_of(clos96_fabric, [make_ring("a", clos96_fabric, [0, 1, 2])])
    decision = EcmpSwitch().decide(view, JobArrived("a"))
    below_one_tor = {flow.id for flow in view.flows if (flow.source[:2], flow.target[:2]) == ("h0", "h1")}
    assert decision.paths.keys() == below_one_tor
    assert set(decision.hashed) == {flow.id for flow in view.flows} - below_one_tor


def test_a_decision_without_paths_gets_the_ecmp_ones(small_fabric: Fabric, make_ring: Callable[..., Job]) -> None:
    view = view_of(small_fabric, [make_ring("a", small_fabric, [0, 2])])
    completed = with_default_paths(view, Decision(levels={"a": 2}))
    assert completed.paths == Ecmp().decide(view, JobArrived("a")).paths
    assert completed.levels == {"a": 2}


def test_flows_hashed_by_switches_get_no_default_path(small_fabric: Fabric, make_ring: Callable[..., Job]) -> None:
    view = view_of(small_fabric, [make_ring("a", small_fabric, [0, 2])])
    decision = EcmpSwitch().decide(view, JobArrived("a"))
    assert with_default_paths(view, decision) == decision


def test_an_unknown_port_is_named() -> None:
    with pytest.raises(KeyError, match="h99n0p0"):
        ecmp_path(CLOS96, Flow("f", "job", "h0n0p0", "h99n0p0", 1.0, 1, 2), 1)
