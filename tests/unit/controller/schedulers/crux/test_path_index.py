"""Arrays against the plain definitions, bit for bit; and choices that are kept against choices made from nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.decision import ClusterView, Decision, Event, JobArrived, JobDeparted
from controller.ecmp_hash import ecmp_path
from controller.schedulers.crux.incremental_paths import MANY
from controller.schedulers.crux.intensity import links_used, profile
from controller.schedulers.crux.path_index import FabricIndex, JobIndex
from controller.schedulers.crux.path_selection import RoutableJob, least_loaded, least_loaded_choice, select_paths
from controller.schedulers.crux.scheduler import Crux
from controller.service.json_codec import to_json
from topologies.clos import clos, clos3
from topologies.double_sided import double_sided
from topologies.fabric import Fabric, Path, SwitchPaths
from topologies.hosts import FabricBuilder, HostShape
from workloads.build import JobSpec, build_jobs
from workloads.job import Job


def with_slow_switch(fabric: Fabric, share: float) -> Fabric:
    """``fabric``, its first aggregation switch on cables of ``share`` of their rate."""
    slow = next(name for name in fabric.switches if name.startswith("agg"))
    links = {
        name: replace(link, capacity=link.capacity * share) if slow in (link.source, link.target) else link
        for name, link in fabric.links.items()
    }
    return replace(fabric, links=links)


def ring_of_tors() -> Fabric:
    """Five ToRs in a ring, two cables between neighbours: ToRs are in the middle of paths, too."""
    shape = HostShape(10, 4, 2, 1, 100e9)
    builder = FabricBuilder()
    tors = builder.add_switches("tor", 5)
    for host in range(10):
        builder.add_host(shape, host, [tors[host % 5]])
    for place, tor in enumerate(tors):
        builder.connect(tor, tors[(place + 1) % 5], "tor-agg", 100e9, parallel=2)
    return builder.build("ring", "ten hosts on a ring", shape)


FABRICS: dict[str, Callable[[], Fabric]] = {
    "clos": lambda: clos(
        hosts=12, gpus_per_host=4, nics_per_host=2, tors=6, aggregations=3, port_rate=200e9, fabric_rate=100e9
    ),
    "parallel-cables": lambda: clos(
        hosts=8,
        gpus_per_host=4,
        nics_per_host=2,
        ports_per_nic=2,
        tors=4,
        aggregations=2,
        parallel_links=2,
        port_rate=100e9,
        fabric_rate=100e9,
    ),
    "clos3": lambda: clos3(
        pods=2,
        hosts=8,
        gpus_per_host=4,
        nics_per_host=2,
        tors_per_pod=2,
        aggregations_per_pod=2,
        cores=3,
        port_rate=100e9,
        fabric_rate=100e9,
    ),
    "many-tors": lambda: clos(
        hosts=24, gpus_per_host=4, nics_per_host=2, tors=12, aggregations=2, port_rate=200e9, fabric_rate=100e9
    ),
    "double-sided": lambda: double_sided(hosts=8, nics_per_host=2, tors=4, aggregations=3, cores=2),
    "slow-pcie": lambda: clos(
        hosts=8,
        gpus_per_host=4,
        nics_per_host=2,
        ports_per_nic=2,
        tors=4,
        aggregations=2,
        port_rate=100e9,
        fabric_rate=100e9,
        pcie_rate=120e9,
        intra_host="pcie",
        pcie_queues="emulated",
    ),
}
FABRICS["ring"] = ring_of_tors
FABRICS["unequal"] = lambda: with_slow_switch(FABRICS["clos"](), 0.1)
FABRICS["unequal-clos3"] = lambda: with_slow_switch(FABRICS["clos3"](), 0.3)
MODELS = ("gpt", "bert", "resnet", "moe", "ctr", "crux-gpt", "crux-bert")
BUILT = {name: make() for name, make in FABRICS.items()}


def some_jobs(fabric: Fabric, seed: int, count: int = 9) -> list[Job]:
    """Jobs of up to 16 GPUs, packed or spread, until the fabric is full."""
    random, specs, free = Random(seed), list[JobSpec](), len(fabric.gpus)
    for number in range(count):
        gpus = random.choice((1, 2, 4, 8, 8, 12, 16))
        if gpus <= free:
            specs.append(JobSpec(f"j{number}", random.choice(MODELS), gpus=gpus))
            free -= gpus
    return list(build_jobs(specs, fabric, random.choice(("first-free", "spread")), seed))


def paths_one_by_one(fabric: Fabric, jobs: list[Job], iteration_s: dict[str, float]) -> dict[str, Path]:
    """What :func:`select_paths` promises, a flow at a time with mappings."""
    load: dict[str, float] = {}
    paths: dict[str, Path] = {}
    for job in jobs:
        for flow in job.flows:
            candidates = fabric.candidate_paths(flow.source, flow.target)
            rate = flow.bytes / iteration_s[job.name] * 8
            own = {link: rate / fabric.links[link].capacity for path in candidates for link in path}
            path = paths[flow.id] = least_loaded(candidates, load, own if unlike(fabric, candidates) else None)
            for link in path:
                load[link] = load.get(link, 0.0) + own[link]
    return paths


def unlike(fabric: Fabric, candidates: Sequence[Path]) -> bool:
    """Whether the candidates differ in capacity at some hop."""
    return any(len({fabric.links[link].capacity for link in hop}) > 1 for hop in zip(*candidates, strict=True))


@pytest.mark.parametrize("name", FABRICS)
def test_paths_between_switches_are_the_candidate_paths_without_their_ends(name: str) -> None:
    fabric = FABRICS[name]()
    found = SwitchPaths(fabric.name, fabric.switches, fabric.links_from)
    ports = list(fabric.ports)
    for source in ports[:: 2 if len(ports) > 20 else 1]:
        for target in ports:
            if source != target:
                between = found.between(fabric.ports[source].switch, fabric.ports[target].switch)
                ends = fabric.uplink(source).name, fabric.uplink(target).reverse
                expected = tuple((ends[0], *path, ends[1]) for path in between)
                assert fabric.candidate_paths(source, target) == expected


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(FABRICS)), st.integers(0, 10_000))
def test_batches_choose_what_one_flow_after_the_other_chooses(name: str, seed: int) -> None:
    fabric = BUILT[name]
    jobs = some_jobs(fabric, seed)
    iteration_s = {job.name: profile(job, fabric).iteration_s for job in jobs}
    assert select_paths(fabric, jobs, iteration_s) == paths_one_by_one(fabric, jobs, iteration_s)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([name for name in FABRICS if not name.startswith("unequal")]), st.integers(0, 10_000))
def test_where_candidates_are_alike_paths_are_those_of_the_placed_load_alone(name: str, seed: int) -> None:
    fabric = BUILT[name]
    jobs = some_jobs(fabric, seed)
    iteration_s = {job.name: profile(job, fabric).iteration_s for job in jobs}
    load: dict[str, float] = {}
    for flow, path in select_paths(fabric, jobs, iteration_s).items():
        job = next(job for job in jobs if any(own.id == flow for own in job.flows))
        sent = next(own for own in job.flows if own.id == flow)
        assert path == least_loaded(fabric.candidate_paths(sent.source, sent.target), load)
        for link in path:
            share = sent.bytes / iteration_s[job.name] * 8 / fabric.links[link].capacity
            load[link] = load.get(link, 0.0) + share


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(FABRICS)), st.integers(0, 10_000), st.sampled_from((0.0, 0.1, 1.0)))
def test_a_path_in_force_stays_where_it_is_worse_by_the_stated_share_at_most(
    name: str, seed: int, share: float
) -> None:
    fabric, random = BUILT[name], Random(seed)
    index = FabricIndex(fabric)
    load, plain = index.no_load(), dict[str, float]()
    for job in some_jobs(fabric, seed):
        on, period_s = JobIndex(job, index), profile(job, fabric).iteration_s
        given = {flow.id: random.choice(fabric.candidate_paths(flow.source, flow.target)) for flow in job.flows}
        given |= {flow.id: ("gone",) for flow in job.flows if random.random() < 0.2}
        in_force = on.choice_of(given)
        assert (in_force < 0).tolist() == [given[flow.id] == ("gone",) for flow in job.flows]
        chosen = on.named_paths(least_loaded_choice(on, load, period_s, in_force, share))
        for flow in job.flows:
            candidates = fabric.candidate_paths(flow.source, flow.target)
            rate = flow.bytes / period_s * 8
            own = {link: rate / fabric.links[link].capacity for path in candidates for link in path}
            most = {path: max(plain.get(link, 0.0) + own[link] for link in path) for path in candidates}
            held = given[flow.id]
            path = least_loaded(candidates, plain, own if unlike(fabric, candidates) else None)
            if held in candidates and most[held] <= (1 + share) * min(most.values()):
                path = held
            assert chosen[flow.id] == path
            for link in path:
                plain[link] = plain.get(link, 0.0) + own[link]


def test_of_two_idle_ways_the_faster_one_is_taken() -> None:
    fabric = BUILT["unequal"]
    (job,) = build_jobs([JobSpec("a", "bert", gpus=8, placement=None)], fabric, "spread")
    paths = select_paths(fabric, [job], {"a": profile(job, fabric).iteration_s})
    slow = next(name for name in fabric.switches if name.startswith("agg"))
    first = paths[job.flows[0].id]
    assert slow in [
        fabric.links[link].target for link in fabric.candidate_paths(job.flows[0].source, job.flows[0].target)[0]
    ]
    assert slow not in [fabric.links[link].target for link in first]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(FABRICS)), st.integers(0, 10_000))
def test_profiles_links_and_hashed_paths_are_those_of_the_plain_definitions(name: str, seed: int) -> None:
    fabric = BUILT[name]
    index = FabricIndex(fabric)
    for job in some_jobs(fabric, seed, 4):
        placed = RoutableJob(JobIndex(job, index))
        hashed = placed.hashed(seed)
        assert hashed.paths == {flow.id: ecmp_path(fabric, flow, seed) for flow in job.flows}
        assert placed.index.alone == profile(job, fabric)
        assert hashed.profile == profile(job, fabric, hashed.paths)
        assert hashed.used == {index.number[link] for link in links_used(job, fabric, hashed.paths)}


def history(scheduler: Callable[[], Crux], fabric: Fabric, seed: int, *, in_force: bool = False) -> list[Decision]:
    """Decisions of a random history of arrivals and departures, each by what ``scheduler`` returns.

    ``in_force``: each is told of the one before.
    """
    random, jobs = Random(seed), some_jobs(fabric, seed)
    running: dict[str, Job] = {}
    decisions = []
    for _ in range(16):
        for job in random.sample(jobs, min(len(jobs), random.choice((1, 1, 1, 3)))):
            event: Event = JobDeparted(job.name) if job.name in running else JobArrived(job.name)
            if running.pop(job.name, None) is None:
                running[job.name] = job
        view = ClusterView(fabric, dict(running), level_count=3, seed=seed)
        view = replace(view, decision=decisions[-1]) if in_force and decisions else view
        decisions.append(scheduler().decide(view, event))
    return decisions


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(list(FABRICS)),
    st.integers(0, 10_000),
    st.booleans(),
    st.sampled_from((0, MANY)),
    st.sampled_from((0.0, 0.1, 1.0)),
)
def test_a_decision_does_not_depend_on_what_was_kept_from_earlier_ones(
    name: str, seed: int, in_force: bool, many: int, steady_paths: float
) -> None:
    def cold() -> Crux:
        return Crux(steady_paths=steady_paths)

    warm = cold()
    with patch("controller.schedulers.crux.incremental_paths.MANY", many):
        kept = history(lambda: warm, BUILT[name], seed, in_force=in_force)
    afresh = history(cold, BUILT[name], seed, in_force=in_force)
    assert [to_json(one) for one in kept] == [to_json(one) for one in afresh]
    for one, other in zip(kept, afresh, strict=True):
        assert (list(one.paths), list(one.levels)) == (list(other.paths), list(other.levels))
        assert str(one.notes) == str(other.notes)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(FABRICS)), st.integers(0, 10_000), st.integers(1, 4))
def test_paths_are_candidates_without_loops_and_levels_fall_along_contention(name: str, seed: int, levels: int) -> None:
    fabric = BUILT[name]
    jobs = {job.name: job for job in some_jobs(fabric, seed)}
    decision = Crux().decide(ClusterView(fabric, jobs, levels, seed), JobArrived("j0"))
    for job in jobs.values():
        for flow in job.flows:
            path = decision.paths[flow.id]
            assert path in fabric.candidate_paths(flow.source, flow.target)
            nodes = [fabric.links[link].source for link in path] + [flow.target]
            assert len(set(nodes)) == len(nodes)
    used = {name: links_used(job, fabric, decision.paths) for name, job in jobs.items()}
    priority = decision.notes["priority"]
    assert isinstance(priority, dict)
    for one in priority:
        for other in priority:
            if priority[one] > priority[other] and used[one] & used[other]:
                assert 0 <= decision.levels[one] <= decision.levels[other] < levels


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(list(FABRICS)), st.integers(0, 10_000))
def test_paths_in_force_are_the_same_by_number_and_by_name(name: str, seed: int) -> None:
    fabric, steady = BUILT[name], {"steady_paths": 0.5}
    jobs = {job.name: job for job in some_jobs(fabric, seed)}
    first = Crux(**steady).decide(ClusterView(fabric, jobs, 3, seed), JobArrived("j0"))
    rest = {name: job for name, job in jobs.items() if name != "j0"}
    warm = Crux(**steady)
    warm.decide(ClusterView(fabric, jobs, 3, seed), JobArrived("j0"))
    by_name = replace(first, paths=dict(first.paths))
    decided = [
        crux.decide(ClusterView(fabric, rest, 3, seed, decision=held), JobDeparted("j0"))
        for crux in (Crux(**steady), warm)
        for held in (first, by_name)
    ]
    assert all(to_json(each) == to_json(decided[0]) for each in decided)


def test_another_fabric_or_another_job_of_the_same_name_is_not_taken_for_the_old_one() -> None:
    crux = Crux()
    for name in ("clos", "double-sided"):
        for seed in (1, 2):
            view = ClusterView(BUILT[name], {job.name: job for job in some_jobs(BUILT[name], seed)})
            assert crux.decide(view, JobArrived("j0")) == Crux().decide(view, JobArrived("j0"))


def test_a_cluster_without_jobs_has_an_empty_decision() -> None:
    decision = Crux().decide(ClusterView(BUILT["clos"], {}), JobDeparted("gone"))
    assert (decision.paths, decision.levels) == ({}, {})
