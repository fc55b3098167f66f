"""Connections of real programs: two flows on one connection, announced while their job runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.planner import ControllerState
from controller.dataplane.rules import RuleBuilder, plans_of
from controller.decider import Decider
from controller.decision import ClusterView, Decision, Event, Scheduler
from controller.schedulers.ecmp import Ecmp
from controller.service.messages import JobRequest
from controller.service.service import RequestError, Service
from topologies.clos import clos
from topologies.fabric import Fabric
from topologies.shaping import dscp_of_level
from workloads.job import Flow, Job, Phase

PORTS = ("h0n0p0", "h1n0p0")


def fabric() -> Fabric:
    return clos(hosts=2, gpus_per_host=1, nics_per_host=1, tors=2, aggregations=2, port_rate=1e9, fabric_rate=1e9)


def both_ways(number: int = 61000) -> tuple[Flow, Flow]:
    one, other = PORTS
    return (
        Flow(f"real:tcp:{one}>{other}", "real", one, other, 1.0, number, 4000, two_way=True),
        Flow(f"real:tcp:{other}>{one}", "real", other, one, 1.0, 4000, number, two_way=True),
    )


def job(*flows: Flow, name: str = "real") -> Job:
    return Job(name, "external", ("h0g0", "h1g0"), (Phase(0.1, 0.0, "ring"),), flows, 1e12, 10)


def test_each_direction_takes_its_own_path_at_its_own_level() -> None:
    there, back = both_ways()
    paths = fabric().candidate_paths(there.source, there.target)
    returns = fabric().candidate_paths(back.source, back.target)
    decision = Decision(paths={there.id: paths[0], back.id: returns[1]}, levels={there.id: 2, back.id: 5})
    network, builder = MemoryNetwork(fabric()), RuleBuilder(fabric())
    from controller.dataplane.network import RuleBatch

    plans = plans_of(builder, fabric(), (there, back), decision, 8)
    network.apply(RuleBatch(add=tuple(rule for plan in plans.values() for rule in plan.rules)))
    for flow, path, level in ((there, paths[0], 2), (back, returns[1], 5)):
        walk = network.walk(flow.source, builder.match(flow))
        assert (walk.reached, walk.links) == (flow.target, path)
        assert walk.packets[-1].dscp == dscp_of_level(level)


def test_connections_that_a_program_opens_replace_those_of_its_job() -> None:
    state = ControllerState(fabric(), Ecmp())
    state.arrive(job())
    opened = state.reconnected(job(*both_ways()))
    assert opened.decision.paths.keys() == {flow.id for flow in both_ways()}
    assert sum(len(batch.add) for batch in opened.batches) == 2 * 3
    closed = state.reconnected(job())
    assert sum(len(batch.delete) for batch in closed.batches) == 2 * 3
    assert state.data_rules() == {}


def test_every_rule_of_a_two_way_flow_carries_data() -> None:
    state = ControllerState(fabric(), Ecmp())
    state.arrive(job(*both_ways()))
    assert [len(rules) for rules in state.data_rules().values()] == [3, 3]


def test_only_the_two_flows_of_a_connection_may_share_its_five_tuple() -> None:
    state = ControllerState(fabric(), Ecmp())
    state.arrive(job(*both_ways()))
    there, back = (replace(flow, id=f"other{flow.id}", job="other") for flow in both_ways())
    with pytest.raises(ValueError, match="has the five-tuple of flow"):
        state.arrive(job(there, back, name="other"))
    with pytest.raises(ValueError, match="has the five-tuple of flow"):
        state.reconnected(job(there, replace(back, two_way=False), name="real"))


def test_connections_of_a_job_that_does_not_run_are_refused() -> None:
    service = Service(MemoryNetwork(fabric()), Ecmp())
    service.put_fabric(fabric())
    with pytest.raises(RequestError, match="no job named 'real'"):
        service.put_job("real", JobRequest(job()))
    service.post_job(JobRequest(job()))
    with pytest.raises(RequestError, match=r"job\.name is 'real', expected 'other'"):
        service.put_job("other", JobRequest(job()))
    assert len(service.put_job("real", JobRequest(job(*both_ways()))).decision.paths) == 2


class _Ports(Scheduler):
    name = "ports"
    summary = ""

    def decide(self, view: ClusterView, event: Event) -> Decision:
        return Decision(ports={flow.id: 20000 for flow in view.flows})


def test_a_program_keeps_its_ports_whatever_a_scheduler_asks_for() -> None:
    decider = Decider(fabric(), _Ports())
    synthetic = replace(both_ways()[0], id="synthetic", two_way=False, source_port=23456)
    decider.arrive(job(synthetic))
    assert decider.decision.ports == {"synthetic": 20000}
    decider.reconnected(job(*both_ways()))
    assert decider.decision.ports == {}
