from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.decision import ClusterView, JobArrived
from controller.ecmp_hash import ecmp_path, five_tuple_of
from controller.schedulers.crux.scheduler import Crux
from controller.schedulers.crux.source_ports import PORTS, Wanted, hash_tree, probe_ports, source_ports
from topologies.clos import clos96
from topologies.double_sided import double_sided
from topologies.fabric import Fabric
from workloads.job import Flow, Job

RingMaker = Callable[..., Job]
MixMaker = Callable[[Fabric], list[Job]]

FABRICS = {"clos96": clos96(), "double-sided": double_sided(hosts=6, nics_per_host=1, tors=4, aggregations=3, cores=2)}


def some_flow(fabric: Fabric, seed: int) -> Flow:
    random = Random(seed)
    source, target = random.sample(sorted(fabric.ports), 2)
    return Flow("f", "job", source, target, 1e9, random.choice(PORTS), 5000)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(FABRICS)), st.integers(0, 10_000), st.integers(0, 100))
def test_every_candidate_path_has_a_port_that_hashes_to_it(name: str, case: int, seed: int) -> None:
    fabric = FABRICS[name]
    flow = some_flow(fabric, case)
    ports = probe_ports(fabric, flow, seed, ())
    assert tuple(ports) == fabric.candidate_paths(flow.source, flow.target)
    for path, port in ports.items():
        assert ecmp_path(fabric, replace(flow, source_port=port), seed) == path


def test_the_flows_own_port_serves_the_path_it_hashes_to() -> None:
    flow = some_flow(FABRICS["clos96"], 3)
    own = ecmp_path(FABRICS["clos96"], flow, 1)
    assert probe_ports(FABRICS["clos96"], flow, 1, ())[own] == flow.source_port


def test_taken_ports_are_left_alone() -> None:
    fabric, flow = FABRICS["clos96"], some_flow(FABRICS["clos96"], 3)
    first = set(probe_ports(fabric, flow, 1, ()).values())
    assert first.isdisjoint(probe_ports(fabric, flow, 1, first).values())


def test_without_a_free_port_a_path_has_none() -> None:
    flow = some_flow(FABRICS["clos96"], 3)
    assert probe_ports(FABRICS["clos96"], flow, 1, {flow.source_port, *PORTS}) == {}


def test_without_a_free_port_a_wanted_path_is_an_error() -> None:
    fabric, flow = FABRICS["clos96"], replace(some_flow(FABRICS["clos96"], 3), source_port=PORTS.start)
    tree = hash_tree(fabric, fabric.candidate_paths(flow.source, flow.target))
    others = [Wanted(replace(flow, id=f"other{port}"), tree, 0) for port in PORTS]
    in_force = {want.flow.id: port for want, port in zip(others, PORTS, strict=True)}
    with pytest.raises(ValueError, match="no free source port at 'h"):
        source_ports(fabric, [*others, Wanted(flow, tree, 0)], 1, in_force)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(list(FABRICS)), st.integers(0, 1000))
def test_with_ports_the_hash_takes_every_flow_along_its_decided_path(name: str, seed: int) -> None:
    fabric = FABRICS[name]
    jobs = mix_of(fabric, seed)
    decision = Crux(enforcement="ports").decide(ClusterView(fabric, jobs, seed=seed), JobArrived("job0"))
    flows = [replace(flow, source_port=decision.ports[flow.id]) for job in jobs.values() for flow in job.flows]
    assert all(ecmp_path(fabric, flow, seed) == decision.paths[flow.id] for flow in flows)
    assert len({five_tuple_of(fabric, flow) for flow in flows}) == len(flows)
    assert all(flow.source_port in PORTS for flow in flows)


def mix_of(fabric: Fabric, seed: int) -> dict[str, Job]:
    """Two jobs over shuffled hosts, all to the next host; both want the same source ports."""
    random, jobs = Random(seed), {}
    for name in ("job0", "job1"):
        hosts = random.sample(list(fabric.hosts.values()), 4)
        ends = [fabric.nics[host.nics[0]].ports[0] for host in hosts]
        flows = tuple(
            Flow(f"{name}/{place}", name, source, target, 1e9 + place, 20000 + place, 5000 + int(name[-1]))
            for place, (source, target) in enumerate(zip(ends, ends[1:] + ends[:1], strict=True))
        )
        jobs[name] = Job(name, "test", tuple(host.gpus[0] for host in hosts), (), flows, 1e15, 10)
    return jobs


def test_a_running_flow_keeps_its_port_while_its_path_stays(clos96_fabric: Fabric, make_mix: MixMaker) -> None:
    crux, jobs = Crux(enforcement="ports"), make_mix(clos96_fabric)
    alone = ClusterView(clos96_fabric, {jobs[0].name: jobs[0]})
    first = crux.decide(alone, JobArrived(jobs[0].name))
    both = replace(alone, jobs={job.name: job for job in reversed(jobs)}, decision=first)
    second = crux.decide(both, JobArrived(jobs[1].name))
    stays = [flow for flow in first.ports if first.paths[flow] == second.paths[flow]]
    assert stays
    assert all(second.ports[flow] == first.ports[flow] for flow in stays)


def test_a_port_that_does_not_take_the_path_is_replaced(clos96_fabric: Fabric, make_ring: RingMaker) -> None:
    view = ClusterView(clos96_fabric, {"a": make_ring("a", clos96_fabric, [0, 2, 4])})
    decided = Crux(enforcement="ports").decide(view, JobArrived("a"))
    other = Crux(enforcement="ports").decide(replace(view, seed=2, decision=decided), JobArrived("a"))
    moved = [flow for job in view.jobs.values() for flow in job.flows if other.ports[flow.id] != decided.ports[flow.id]]
    assert moved
    for flow in moved:
        assert ecmp_path(clos96_fabric, replace(flow, source_port=other.ports[flow.id]), 2) == other.paths[flow.id]


def test_by_default_there_are_no_ports(clos96_fabric: Fabric, make_ring: RingMaker) -> None:
    view = ClusterView(clos96_fabric, {"a": make_ring("a", clos96_fabric, [0, 2])})
    assert Crux().decide(view, JobArrived("a")).ports == {}
