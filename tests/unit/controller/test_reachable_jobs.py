"""Failures that leave ports without a cable: jobs that are cut off wait, NICs with two ports go on over the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.planner import ControllerState
from controller.dataplane.rules import RuleBuilder
from controller.decider import Decider, with_hashed_paths
from controller.decision import LinkDown, LinkUp
from controller.schedulers.registry import create, names
from tests.unit.controller.conftest import FABRICS, ring, small
from topologies.addressing import mac_of
from topologies.fabric import Fabric
from workloads.job import Job

PLACED = [name for name in names() if name not in ("fixed", "ideal")]
DUAL = ("hpn", "hpn-planes", "dcn+-dual", "double-sided")


def cables_of(fabric: Fabric, *nodes: str) -> list[str]:
    """The cables at ``nodes``, by the link that leaves each."""
    return [link.name for node in nodes for link in fabric.links_from[node]]


def fail(decider: Decider, fabric: Fabric, cables: Sequence[str]) -> None:
    decider.links_changed(fabric.without(cables), LinkDown(cables[0], tuple(cables[1:])))


def two_rings(fabric: Fabric) -> tuple[Job, Job]:
    hosts = len(fabric.hosts)
    return (
        ring("a", fabric, [0, hosts - 2]),
        ring("b", fabric, [1, hosts - 1], first_port=30000),
    )


@pytest.mark.parametrize("name", PLACED)
def test_a_job_whose_port_has_lost_its_cable_is_left_out_until_it_is_back(name: str) -> None:
    fabric = small()
    decider, (a, b) = Decider(fabric, create(name, {}, 1), complete=with_hashed_paths), two_rings(fabric)
    decider.arrive(a)
    decider.arrive(b)
    fail(decider, fabric, cables_of(fabric, "h0n0p0"))
    assert (decider.cut_off, list(decider.seen.jobs), list(decider.view.jobs)) == ({"a"}, ["b"], ["a", "b"])
    assert decider.seen.jobs["b"] is b
    assert {flow.id for flow in b.flows} <= decider.decision.paths.keys()
    decider.links_changed(fabric, LinkUp("h0n0p0->tor0"))
    assert (decider.cut_off, decider.seen.jobs["a"]) == (set(), a)
    assert {flow.id for flow in a.flows} <= decider.decision.paths.keys()


def test_hosts_on_one_switch_go_on_where_their_switch_has_lost_all_others() -> None:
    fabric = small()
    decider = Decider(fabric, create("crux"))
    decider.arrive(ring("near", fabric, [0, 1]))
    decider.arrive(ring("far", fabric, [0, 2], first_port=30000))
    fail(decider, fabric, ["tor0->agg0", "tor0->agg1"])
    assert decider.cut_off == {"far"}


def test_nobody_is_asked_about_a_job_that_arrives_cut_off() -> None:
    fabric = small()
    decider, (a, b) = Decider(fabric, create("crux")), two_rings(fabric)
    decider.arrive(b)
    fail(decider, fabric, cables_of(fabric, "h0n0p0"))
    before = decider.decision
    assert decider.arrive(a) == replace(before, cut_off=("a",))
    decider.links_changed(fabric, LinkUp("h0n0p0->tor0"))
    assert {flow.id for flow in a.flows} <= decider.decision.paths.keys()


@pytest.mark.parametrize("kind", DUAL)
@pytest.mark.parametrize("name", PLACED)
def test_a_nic_with_two_ports_goes_on_over_the_other_one(kind: str, name: str) -> None:
    fabric = FABRICS[kind]()
    decider, (a, b) = Decider(fabric, create(name, {}, 1), complete=with_hashed_paths), two_rings(fabric)
    decider.arrive(a)
    decider.arrive(b)
    fail(decider, fabric, cables_of(fabric, "h0n0p0"))
    assert not decider.cut_off
    seen = decider.seen.jobs["a"]
    assert [flow.id for flow in seen.flows] == [flow.id for flow in a.flows]
    for flow, now in zip(a.flows, seen.flows, strict=True):
        path = decider.decision.paths[flow.id]
        assert path in decider.seen.fabric.candidate_paths(now.source, now.target)
        moved = "h0n0p0" in (flow.source, flow.target)
        assert moved == ((flow.source, flow.target) != (now.source, now.target))
        if moved:
            own, other = (flow.source, now.source) if flow.source == "h0n0p0" else (flow.target, now.target)
            assert (own, other) == ("h0n0p0", "h0n0p1")


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_under_any_failures_every_scheduler_has_a_path_for_all_that_can_communicate(data: st.DataObject) -> None:
    fabric = FABRICS[data.draw(st.sampled_from(list(FABRICS)))]()
    decider = Decider(fabric, create(data.draw(st.sampled_from(PLACED)), {}, 1), complete=with_hashed_paths)
    for job in two_rings(fabric):
        decider.arrive(job)
    cables = [link.name for link in fabric.network_links if link.name < link.reverse]
    for _ in range(3):
        down = data.draw(st.lists(st.sampled_from(cables), max_size=len(cables) // 2, unique=True))
        event = LinkDown(down[0], tuple(down[1:])) if down else LinkUp(cables[0])
        decision = decider.links_changed(fabric.without(down), event)
        for flow in decider.seen.flows:
            assert decision.paths[flow.id] in decider.seen.fabric.candidate_paths(flow.source, flow.target)
    decision = decider.links_changed(fabric, LinkUp(cables[0]))
    assert not decider.cut_off
    assert all(
        decision.paths[flow.id] in fabric.candidate_paths(flow.source, flow.target) for flow in decider.view.flows
    )


@pytest.mark.parametrize("kind", DUAL)
def test_rules_lead_packets_to_the_other_port_under_its_address(kind: str) -> None:
    fabric = FABRICS[kind]()
    state, network, builder = ControllerState(fabric, create("crux")), MemoryNetwork(fabric), RuleBuilder(fabric)
    a, _ = two_rings(fabric)
    changes = [state.arrive(a)]
    failed = fabric.uplink("h0n0p0").name
    changes.append(state.link_changed(LinkDown(failed)))
    for change in changes:
        for batch in change.batches:
            network.apply(batch)
    for flow in a.flows:
        path = state.decision.paths[flow.id]
        first, last = fabric.links[path[0]].source, fabric.links[path[-1]].target
        assert failed not in (path[0], fabric.links[path[-1]].reverse)
        walk = network.walk(first, builder.match(flow))
        assert (walk.links, walk.reached) == (path, last)
        assert walk.packets[-1].eth_dst == mac_of(fabric, last)
        back = network.walk(last, builder.match(flow).swapped())
        assert back.reached == first


def test_rules_of_a_job_that_is_cut_off_stay_and_it_moves_when_it_is_back() -> None:
    fabric = small()
    state, (a, b) = ControllerState(fabric, create("crux")), two_rings(fabric)
    state.arrive(a)
    state.arrive(b)
    rules = state.data_rules()
    state.link_changed(LinkDown("h0n0p0->tor0"))
    assert {flow.id: state.data_rules()[flow.id] for flow in a.flows} == {flow.id: rules[flow.id] for flow in a.flows}
    assert not state.depart("b").moved
    state.link_changed(LinkUp("h0n0p0->tor0"))
    assert state.data_rules().keys() == {flow.id for flow in a.flows}
    assert not state.pending
