"""Loops over flows and links give what numpy gives to the last bit, compiled and not; so do paths by number."""

from __future__ import annotations

import pickle
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.schedulers.crux.chosen_paths import ChosenPaths
from controller.schedulers.crux.path_index import FabricIndex, JobIndex
from controller.schedulers.crux.path_loops import PathLoops, least_loaded, most_loaded_s
from controller.schedulers.crux.path_selection import PathAssignment, least_loaded_choice
from testbed.engines.replay.compiled_loops import LOOPS
from testbed.engines.replay.traffic import Traffic, link_classes
from topologies.clos import clos, clos3
from topologies.double_sided import double_sided
from topologies.fabric import Fabric
from workloads.build import JobSpec, build_jobs
from workloads.job import Job
from workloads.models.catalogue import CATALOGUE


def with_slow_switch(fabric: Fabric) -> Fabric:
    slow = {
        name: replace(link, capacity=link.capacity / (2 if "agg1" in name else 1))
        for name, link in fabric.links.items()
    }
    return replace(fabric, links=slow)


TREE = clos3(
    pods=2,
    hosts=8,
    gpus_per_host=4,
    nics_per_host=2,
    tors_per_pod=2,
    aggregations_per_pod=2,
    cores=3,
    port_rate=100e9,
    fabric_rate=100e9,
)
FABRICS = (
    clos(
        hosts=8,
        gpus_per_host=4,
        nics_per_host=2,
        ports_per_nic=2,
        tors=4,
        aggregations=3,
        port_rate=100e9,
        fabric_rate=100e9,
    ),
    TREE,
    double_sided(hosts=6),
    with_slow_switch(TREE),
)
PLAIN = PathLoops(least_loaded, most_loaded_s)
KINDS = [None, PLAIN, *([] if LOOPS is None else [LOOPS])]


def some_job(fabric: Fabric, seed: int) -> Job:
    random = Random(seed)
    gpus = tuple(random.sample(fabric.gpus, random.randint(2, len(fabric.gpus) // 2)))
    size = random.choice([None, None, 0.0])
    spec = JobSpec("job", random.choice(list(CATALOGUE)), placement=gpus, communication_bytes=size)
    return build_jobs([spec], fabric)[0]


@settings(deadline=None)
@given(st.sampled_from(FABRICS), st.integers(0, 10_000), st.sampled_from((0.0, 0.1)))
def test_loops_choose_add_and_profile_what_numpy_does(fabric: Fabric, seed: int, share: float) -> None:
    job, found = some_job(fabric, seed), []
    for loops in KINDS:
        index = FabricIndex(fabric)
        index.loops = loops
        random, load, on = np.random.default_rng(seed), index.no_load(), JobIndex(job, index)
        load[: index.absent] += random.integers(0, 3, index.absent) * 0.1
        in_force = random.integers(-1, on.table.shape[2], len(job.flows)) if share else None
        choice = least_loaded_choice(on, load, on.alone.iteration_s, in_force, share)
        found.append((choice.tolist(), load.tolist(), on.alone, on.profile(on.links_of(choice))))
        assert not index.room.any()
    assert all(each == found[0] for each in found)


@settings(deadline=None)
@given(st.sampled_from(FABRICS), st.integers(0, 10_000))
def test_what_a_job_loads_is_the_sum_of_its_flows_on_named_links(fabric: Fabric, seed: int) -> None:
    job = some_job(fabric, seed)
    if not job.flows:
        return
    index = FabricIndex.of(fabric)
    traffic, on = Traffic(job, index, link_classes(index), seed), index.job(job)
    traffic.follow({})
    by_name = dict(on.named_paths(on.hashed_choice(seed)))
    expected: dict[str, float] = {}
    for flow in job.flows:
        for link in by_name[flow.id]:
            expected[link] = expected.get(link, 0.0) + flow.bytes
    for side, end in (("source", 0), ("target", 1)):
        for flow in job.flows:
            nic = fabric.ports[getattr(flow, side)].nic
            link = fabric.nic_links[nic][end].name
            expected[link] = expected.get(link, 0.0) + flow.bytes
    seconds = {index.number[link]: 8 * size / fabric.links[link].capacity for link, size in expected.items() if size}
    assert traffic.loads == seconds
    again = Traffic(job, index, link_classes(index), seed)
    again.follow(by_name)
    assert again.loads == traffic.loads and again.by_class == traffic.by_class
    flows = list(by_name)
    again.follow(
        {flow: by_name[flow] for flow in flows[len(flows) // 2 :]}
    )  # ECMP's for the others, as Hedera leaves them
    assert again.loads == traffic.loads


@pytest.mark.parametrize("fabric", FABRICS)
def test_chosen_paths_are_a_mapping_of_names_that_other_processes_can_read(fabric: Fabric) -> None:
    (job,) = build_jobs([JobSpec("job", "moe", placement=fabric.gpus[2:12])], fabric)
    on = JobIndex(job, FabricIndex(fabric))
    chosen = PathAssignment(on, on.hashed_choice(3)).paths
    named = on.named_paths(on.hashed_choice(3))
    assert isinstance(chosen, ChosenPaths)
    assert chosen == named and dict(chosen) == named and len(chosen) == len(named) and repr(chosen) == repr(named)
    assert all(flow in chosen and chosen[flow] == named[flow] for flow in named) and "other" not in chosen
    assert pickle.loads(pickle.dumps(chosen)) == named
