"""Rules for switches that spread packets: all paths of a flow, whichever is decided."""

from __future__ import annotations

from collections.abc import Callable

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.network import RuleBatch
from controller.dataplane.planner import ControllerState
from controller.dataplane.rules import FlowRule, RuleBuilder, plans_of
from controller.decision import ClusterView, Decision, JobArrived, LinkDown
from controller.schedulers.ecmp import Ecmp
from controller.schedulers.registry import create
from controller.service.messages import JobRequest
from controller.service.service import Service
from topologies.addressing import mac_of
from topologies.fabric import Fabric
from topologies.shaping import dscp_of_level
from workloads.job import Flow, Job

MixMaker = Callable[[Fabric], list[Job]]


def everywhere(fabric: Fabric, rules: tuple[FlowRule, ...], groups: dict[tuple[str, int], tuple[int, ...]]) -> set[str]:
    """All links that packets may take by ``rules`` of one five-tuple, which no rule tells apart by incoming port."""
    by_port = {(link.source, number): link.name for link, number in numbered(fabric)}
    found = set()
    for rule in rules:
        actions = rule.actions
        outputs = groups[rule.switch, actions.group] if actions.group is not None else (actions.output,)
        found |= {by_port[rule.switch, output] for output in outputs if output is not None}
    return found


def numbered(fabric: Fabric) -> list[tuple[object, int]]:
    from topologies.addressing import port_numbers

    return [(fabric.links[name], number) for name, number in port_numbers(fabric).items()]  # type: ignore[misc]


def test_data_may_take_every_path_and_acknowledgements_come_back_by_one(any_fabric: Fabric, make_mix: MixMaker) -> None:
    jobs = make_mix(any_fabric)
    view = ClusterView(any_fabric, {job.name: job for job in jobs})
    decision = Decision(paths=Ecmp().decide(view, JobArrived("job0")).paths, levels={"job0": 2})
    builder = RuleBuilder(any_fabric, spread=True)
    for flow, plan in zip(view.flows, plans_of(builder, any_fabric, view.flows, decision, 8).values(), strict=True):
        match, paths = builder.match(flow), any_fabric.candidate_paths(flow.source, flow.target)
        groups = {(group.switch, group.group): group.outputs for group in plan.groups}
        data = tuple(rule for rule in plan.rules if rule.match == match)
        back = tuple(rule for rule in plan.rules if rule.match == match.swapped())
        assert everywhere(any_fabric, data, groups) == {link for path in paths for link in path[1:]}
        returned = {any_fabric.links[link].reverse for link in everywhere(any_fabric, back, groups)}
        assert any(returned == set(path[:-1]) for path in paths)
        assert len(data) + len(back) == len(plan.rules)


def test_only_the_first_switch_marks_and_only_the_last_one_sets_the_address(
    any_fabric: Fabric, make_mix: MixMaker
) -> None:
    jobs = make_mix(any_fabric)
    view = ClusterView(any_fabric, {job.name: job for job in jobs})
    decision = Decision(levels={"job0": 2})
    builder = RuleBuilder(any_fabric, spread=True)
    for flow in view.flows:
        plan = plans_of(builder, any_fabric, [flow], decision, 8)[flow.id]
        first, last = plan.along[0], plan.along[-1]
        assert len(plan.along) == (1 if first == last else 2)
        dscp = dscp_of_level(2 if flow.job == "job0" else 7)
        data = [rule for rule in plan.rules if rule.match == builder.match(flow)]
        assert [rule for rule in data if rule.actions.dscp is not None] == [first] and first.actions.dscp == dscp
        assert [rule for rule in data if rule.actions.eth_dst is not None] == [last]
        assert last.actions.eth_dst == mac_of(any_fabric, flow.target)


def test_every_packet_arrives_whatever_the_groups_choose(any_fabric: Fabric, make_mix: MixMaker) -> None:
    jobs = make_mix(any_fabric)
    view = ClusterView(any_fabric, {job.name: job for job in jobs})
    builder, network = RuleBuilder(any_fabric, spread=True), MemoryNetwork(any_fabric)
    plans = plans_of(builder, any_fabric, view.flows, Decision(), 8)
    groups = tuple(dict.fromkeys(group for plan in plans.values() for group in plan.groups))
    network.apply(RuleBatch(groups=groups, add=tuple(rule for plan in plans.values() for rule in plan.rules)))
    for flow in view.flows:
        walk = network.walk(flow.source, builder.match(flow))
        assert walk.reached == flow.target
        assert walk.links in any_fabric.candidate_paths(flow.source, flow.target)
        assert network.walk(flow.target, builder.match(flow).swapped()).reached == flow.source


def test_other_paths_that_a_scheduler_decides_move_nothing(small_fabric: Fabric, make_mix: MixMaker) -> None:
    state, jobs = ControllerState(small_fabric, create("crux"), spread=True), make_mix(small_fabric)
    for job in jobs:
        change = state.arrive(job, move=False)
        assert not any(flow.path_changed for flow in change.moved)


def test_a_cable_that_fails_leaves_the_groups_and_flows_are_committed(small_fabric: Fabric, make_mix: MixMaker) -> None:
    network = MemoryNetwork(small_fabric)
    service = Service(network, create("ecmp"), spread=True)
    service.put_fabric(small_fabric)
    job = make_mix(small_fabric)[0]
    service.post_job(JobRequest(job, "now"))
    state = service._state()
    failed = next(link.name for link in small_fabric.network_links if link.source == "tor0" and link.target == "agg0")
    change = state.link_changed(LinkDown(failed, ()), move=False)
    crossing: list[Flow] = [
        flow for flow in job.flows if any(failed in p for p in small_fabric.candidate_paths(flow.source, flow.target))
    ]
    assert crossing and {flow.id for flow in crossing} <= {moved.flow for moved in change.moved}
    for batch in (*change.batches, *state.commit([moved.flow for moved in change.moved])):
        network.apply(batch)
    for flow in crossing:
        assert failed not in network.walk(flow.source, RuleBuilder(small_fabric).match(flow)).links
    assert service.get_verification().mismatches == ()
