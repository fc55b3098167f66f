"""ECMP paths kept by job: always those that hashing all flows again gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from controller.decision import ClusterView
from controller.ecmp_hash import ecmp_path
from controller.schedulers.common.hashed_paths import HashedPaths
from topologies.fabric import Fabric
from workloads.job import Job


def view_of(fabric: Fabric, jobs: list[Job]) -> ClusterView:
    return ClusterView(fabric, {job.name: job for job in jobs})


def test_jobs_that_stay_keep_their_paths_and_those_that_left_are_forgotten(
    clos96_fabric: Fabric, make_mix: Callable[[Fabric], list[Job]]
) -> None:
    jobs, hashed = make_mix(clos96_fabric), HashedPaths()
    first = hashed.of(view_of(clos96_fabric, jobs), 1)
    later = hashed.of(view_of(clos96_fabric, jobs[1:]), 1)
    assert later.by_job.keys() == {job.name for job in jobs[1:]}
    assert all(later.by_job[job.name] is first.by_job[job.name] for job in jobs[1:])


def test_another_fabric_seed_or_job_of_the_same_name_is_hashed_again(
    clos96_fabric: Fabric, make_mix: Callable[[Fabric], list[Job]]
) -> None:
    jobs, hashed = make_mix(clos96_fabric), HashedPaths()
    cut = clos96_fabric.without(["tor0->agg0", "agg0->tor0"])
    other = replace(jobs[0], flows=tuple(replace(flow, source_port=flow.source_port + 1) for flow in jobs[0].flows))
    found = []
    for view, seed in (
        (view_of(clos96_fabric, jobs), 1),
        (view_of(clos96_fabric, jobs), 2),
        (view_of(cut, jobs), 2),
        (view_of(cut, [other, *jobs[1:]]), 2),
    ):
        found.append(dict(hashed.of(view, seed)))
        assert found[-1] == {flow.id: ecmp_path(view.fabric, flow, seed) for flow in view.flows}
    assert all(one != other for one, other in pairwise(found))
