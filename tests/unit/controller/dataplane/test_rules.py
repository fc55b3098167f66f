from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.network import NetworkError, RuleBatch
from controller.dataplane.rules import FlowPlan, RuleBuilder, diff, plans_of
from controller.dataplane.verification import observed_paths
from controller.decision import ClusterView, Decision, JobArrived
from controller.schedulers.ecmp import Ecmp, EcmpSwitch
from topologies.addressing import mac_of
from topologies.fabric import Fabric
from topologies.shaping import dscp_of_level
from workloads.job import Job

MixMaker = Callable[[Fabric], list[Job]]


def install(network: MemoryNetwork, plans: dict[str, FlowPlan]) -> None:
    groups = tuple(dict.fromkeys(group for plan in plans.values() for group in plan.groups))
    network.apply(RuleBatch(groups=groups, add=tuple(rule for plan in plans.values() for rule in plan.rules)))


def decided(fabric: Fabric, jobs: list[Job], levels: dict[str, int]) -> tuple[ClusterView, Decision]:
    view = ClusterView(fabric, {job.name: job for job in jobs})
    return view, Decision(paths=Ecmp().decide(view, JobArrived(jobs[0].name)).paths, levels=levels)


def test_every_flow_reaches_its_nic_over_the_decided_path(any_fabric: Fabric, make_mix: MixMaker) -> None:
    view, decision = decided(any_fabric, make_mix(any_fabric), {"job0": 2})
    network, builder = MemoryNetwork(any_fabric), RuleBuilder(any_fabric)
    install(network, plans_of(builder, any_fabric, view.flows, decision, 8))
    for flow in view.flows:
        walk = network.walk(flow.source, builder.match(flow))
        assert walk.reached == flow.target
        assert walk.links == decision.paths[flow.id]
        assert walk.packets[-1].eth_dst == mac_of(any_fabric, flow.target)


def test_acknowledgements_come_back_over_the_same_cables(any_fabric: Fabric, make_mix: MixMaker) -> None:
    view, decision = decided(any_fabric, make_mix(any_fabric), {"job0": 2})
    network, builder = MemoryNetwork(any_fabric), RuleBuilder(any_fabric)
    install(network, plans_of(builder, any_fabric, view.flows, decision, 8))
    for flow in view.flows:
        walk = network.walk(flow.target, builder.match(flow).swapped())
        reverse = tuple(any_fabric.links[link].reverse for link in reversed(decision.paths[flow.id]))
        assert (walk.reached, walk.links) == (flow.source, reverse)
        assert walk.packets[-1].eth_dst == mac_of(any_fabric, flow.source)


def test_data_carries_its_level_and_acknowledgements_the_highest_from_the_first_switch_on(
    any_fabric: Fabric, make_mix: MixMaker
) -> None:
    view, decision = decided(any_fabric, make_mix(any_fabric), {"job0": 2})
    network, builder = MemoryNetwork(any_fabric), RuleBuilder(any_fabric)
    install(network, plans_of(builder, any_fabric, view.flows, decision, 8))
    for flow in view.flows:
        dscp = dscp_of_level(2 if flow.job == "job0" else 7)
        match = builder.match(flow)
        data, acknowledgements = network.walk(flow.source, match), network.walk(flow.target, match.swapped())
        assert {packet.dscp for packet in data.packets} == {dscp}
        assert {packet.dscp for packet in acknowledgements.packets} == {dscp_of_level(0)}


def test_what_no_rule_names_is_dropped_at_the_first_switch(small_fabric: Fabric, make_mix: MixMaker) -> None:
    network, builder = MemoryNetwork(small_fabric), RuleBuilder(small_fabric)
    flow = make_mix(small_fabric)[0].flows[0]
    walk = network.walk(flow.source, builder.match(flow))
    assert (walk.reached, len(walk.links)) == (None, 1)


def test_select_groups_deliver_every_flow_and_tell_the_way_they_took(any_fabric: Fabric, make_mix: MixMaker) -> None:
    jobs = make_mix(any_fabric)
    view = ClusterView(any_fabric, {job.name: job for job in jobs})
    decision = EcmpSwitch().decide(view, JobArrived("job0"))
    network, builder = MemoryNetwork(any_fabric), RuleBuilder(any_fabric)
    install(network, plans_of(builder, any_fabric, view.flows, decision, 8))
    hashed = [flow for flow in view.flows if flow.id in set(decision.hashed)]
    assert set(observed_paths(any_fabric, hashed, network.read()).values()) == {None}
    walks = {flow.id: network.walk(flow.source, builder.match(flow)) for flow in hashed}
    for flow in hashed:
        assert walks[flow.id].reached == flow.target
        assert network.walk(flow.target, builder.match(flow).swapped()).reached == flow.source
    assert observed_paths(any_fabric, hashed, network.read()) == {flow: walk.links for flow, walk in walks.items()}


def test_only_rules_of_flows_whose_path_or_level_changes_are_made_again(any_fabric: Fabric, make_mix: MixMaker) -> None:
    jobs = make_mix(any_fabric)
    view, decision = decided(any_fabric, jobs, {job.name: 3 for job in jobs})
    builder, flows = RuleBuilder(any_fabric), view.flows
    before = plans_of(builder, any_fabric, flows, decision, 8)
    moved = next(flow for flow in flows if len(any_fabric.candidate_paths(flow.source, flow.target)) > 1)
    paths = any_fabric.candidate_paths(moved.source, moved.target)
    other = next(path for path in paths if path != decision.paths[moved.id])
    after = Decision(paths={**decision.paths, moved.id: other}, levels={**decision.levels, jobs[-1].name: 2})
    plans = plans_of(builder, any_fabric, flows, after, 8, before)
    changed = {moved.id, *(flow.id for flow in jobs[-1].flows)}
    assert {flow for flow, plan in plans.items() if plan is not before[flow]} == changed
    assert plans == plans_of(builder, any_fabric, flows, after, 8)


def test_a_decision_with_an_impossible_path_is_refused(small_fabric: Fabric, make_mix: MixMaker) -> None:
    view, decision = decided(small_fabric, make_mix(small_fabric), {})
    flow = view.flows[0]
    wrong = Decision(paths={**decision.paths, flow.id: ("h0n0p0->tor0",)})
    with pytest.raises(ValueError, match=f"flow '{flow.id}' has no path among its candidates"):
        plans_of(RuleBuilder(small_fabric), small_fabric, view.flows, wrong, 8)


def test_a_level_outside_the_range_is_refused(small_fabric: Fabric, make_mix: MixMaker) -> None:
    view, decision = decided(small_fabric, make_mix(small_fabric), {"job0": 4})
    with pytest.raises(ValueError, match="level must be from 0 to 3, not 4"):
        plans_of(RuleBuilder(small_fabric), small_fabric, view.flows, decision, 4)


def test_a_changed_path_adds_downstream_flips_first_and_deletes_last(small_fabric: Fabric, make_mix: MixMaker) -> None:
    flow = next(flow for flow in make_mix(small_fabric)[0].flows)
    builder = RuleBuilder(small_fabric)
    old, new = (
        builder.plan(flow, [path], 0).rules for path in small_fabric.candidate_paths(flow.source, flow.target)[:2]
    )
    update = diff(old, new)
    assert {rule.switch for rule in update.add_downstream} == {"agg1"}
    assert {rule.switch for rule in update.flip_at_first_switch} == {"tor0", "tor1"}
    assert all(rule.is_first for rule in update.flip_at_first_switch)
    assert update.replace_downstream == ()
    assert {rule.switch for rule in update.delete} == {"agg0"}


def test_a_changed_level_touches_only_the_first_switch_of_the_data(small_fabric: Fabric, make_mix: MixMaker) -> None:
    flow = make_mix(small_fabric)[0].flows[0]
    path = small_fabric.candidate_paths(flow.source, flow.target)[0]
    builder = RuleBuilder(small_fabric)
    update = diff(builder.plan(flow, [path], 0).rules, builder.plan(flow, [path], 56).rules)
    assert [rule.switch for rule in update.moves] == ["tor0"]
    assert not update.add_downstream and not update.delete


def test_a_new_flow_needs_no_flip(small_fabric: Fabric, make_mix: MixMaker) -> None:
    flow = make_mix(small_fabric)[0].flows[0]
    rules = RuleBuilder(small_fabric).plan(flow, small_fabric.candidate_paths(flow.source, flow.target)[:1], 0).rules
    update = diff((), rules)
    assert update.add_downstream == rules and not update.moves and not update.delete


def test_no_packet_is_lost_at_any_moment_of_a_move(any_fabric: Fabric, make_mix: MixMaker) -> None:
    jobs, builder = make_mix(any_fabric), RuleBuilder(any_fabric)
    flows = [flow for job in jobs for flow in job.flows]
    flow = max(flows, key=lambda flow: len(any_fabric.candidate_paths(flow.source, flow.target)))
    candidates = any_fabric.candidate_paths(flow.source, flow.target)
    for path in candidates[1:]:
        network = MemoryNetwork(any_fabric)
        old, new = builder.plan(flow, [candidates[0]], 0).rules, builder.plan(flow, [path], 8).rules
        network.apply(RuleBatch(add=old))
        update = diff(old, new)
        steps = [RuleBatch(add=(rule,)) for rule in (*update.add_downstream, *update.moves)]
        steps += [RuleBatch(delete=(rule,)) for rule in update.delete]
        for step in steps:
            network.apply(step)
            match = builder.match(flow)
            assert network.walk(flow.source, match).reached == flow.target
            assert network.walk(flow.target, match.swapped()).reached == flow.source
        assert network.walk(flow.source, match).links == path
        assert {count.rule for count in network.read()} == set(new)


def test_a_switch_that_is_away_is_named(small_fabric: Fabric, make_mix: MixMaker) -> None:
    view, decision = decided(small_fabric, make_mix(small_fabric), {})
    network = MemoryNetwork(small_fabric)
    network.away.add("tor1")
    with pytest.raises(NetworkError, match="switch tor1 is not connected"):
        install(network, plans_of(RuleBuilder(small_fabric), small_fabric, view.flows, decision, 8))
