"""Rules read back and packets counted, against what was decided: what differs is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.network import RuleBatch
from controller.dataplane.rules import RuleBuilder
from controller.schedulers.registry import create
from controller.service.messages import JobRequest
from controller.service.service import Service
from topologies.fabric import Fabric
from workloads.job import Job


class Bench:
    """A job on a small fabric whose packets have all been sent once."""

    def __init__(self, fabric: Fabric, job: Job) -> None:
        self.fabric, self.job = fabric, job
        self.network = MemoryNetwork()
        self.service = Service(self.network, create("ecmp"))
        self.service.put_fabric(fabric)
        self.service.post_job(JobRequest(job))

    def send(self) -> None:
        builder = RuleBuilder(self.fabric)
        for flow in self.job.flows:
            self.network.walk(flow.source, builder.match(flow))
            self.network.walk(flow.target, builder.match(flow).swapped())

    def mismatches(self) -> list[str]:
        return list(self.service.get_verification().mismatches)


@pytest.fixture
def bench(small_fabric: Fabric, make_ring: Callable[..., Job]) -> Bench:
    return Bench(small_fabric, make_ring("a", small_fabric, [0, 2]))


def test_what_was_decided_and_done_has_no_mismatch(bench: Bench) -> None:
    assert bench.mismatches() == []
    bench.send()
    assert bench.mismatches() == []


def test_a_deleted_rule_is_missed(bench: Bench) -> None:
    rule = bench.network.read()[0].rule
    bench.network.apply(RuleBatch(delete=(rule,)))
    assert f"switch {rule.switch} lacks the rule of" in bench.mismatches()[0]


def test_a_rule_changed_behind_the_controllers_back_is_noticed(bench: Bench) -> None:
    rule = next(count.rule for count in bench.network.read() if count.rule.is_first)
    bench.network.apply(RuleBatch(add=(replace(rule, actions=replace(rule.actions, dscp=8)),)))
    (line,) = bench.mismatches()
    assert line.startswith(f"switch {rule.switch} treats ") and line.endswith(" otherwise than decided")


def test_a_rule_that_nobody_decided_is_noticed(bench: Bench) -> None:
    rule = bench.network.read()[0].rule
    stranger = replace(rule, match=replace(rule.match, source_port=1))
    bench.network.apply(RuleBatch(add=(stranger,)))
    (line,) = bench.mismatches()
    assert "that nobody decided" in line


def test_packets_that_left_the_path_are_noticed(bench: Bench) -> None:
    flow = next(flow for flow in bench.job.flows)
    decision = bench.service.get_state().decision
    assert decision is not None
    path = decision.paths[flow.id]
    second = bench.fabric.links[path[1]].target
    held = next(
        c.rule for c in bench.network.read() if c.rule.switch == second and c.rule.match.source_port == flow.source_port
    )
    bench.network.apply(RuleBatch(delete=(held,)))
    bench.send()
    bench.network.apply(RuleBatch(add=(held,)))
    assert f"no packet of flow {flow.id} passed switch {second} of its path" in bench.mismatches()


def test_the_packets_of_a_flow_are_told_switch_by_switch_along_its_path(bench: Bench) -> None:
    bench.send()
    packets = bench.service.get_verification().packets
    assert set(packets) == {flow.id for flow in bench.job.flows}
    assert all(counts and set(counts) == {1} for counts in packets.values())
