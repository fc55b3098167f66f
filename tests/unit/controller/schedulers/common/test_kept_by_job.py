"""What is kept by job is always what computing it again gives: here ECMP paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

from controller.ecmp_hash import ecmp_paths
from controller.schedulers.common.kept_by_job import KeptByJob
from topologies.fabric import Fabric, Path
from workloads.job import Job

Paths = Mapping[str, Path]


def hashed(fabric: Fabric, job: Job, seed: int) -> Paths:
    return ecmp_paths(fabric, job.flows, seed)


def by_name(jobs: list[Job]) -> dict[str, Job]:
    return {job.name: job for job in jobs}


def test_jobs_that_stay_keep_their_paths_and_those_that_left_are_forgotten(
    clos96_fabric: Fabric, make_mix: Callable[[Fabric], list[Job]]
) -> None:
    jobs, kept = make_mix(clos96_fabric), KeptByJob(hashed)
    first = kept.of(clos96_fabric, by_name(jobs), 1)
    later = kept.of(clos96_fabric, by_name(jobs[1:]), 1)
    assert later.keys() == {job.name for job in jobs[1:]}
    assert all(later[job.name] is first[job.name] for job in jobs[1:])


def test_another_fabric_seed_or_job_of_the_same_name_is_hashed_again(
    clos96_fabric: Fabric, make_mix: Callable[[Fabric], list[Job]]
) -> None:
    jobs, kept = make_mix(clos96_fabric), KeptByJob(hashed)
    cut = clos96_fabric.without(["tor0->agg0", "agg0->tor0"])
    other = replace(jobs[0], flows=tuple(replace(flow, source_port=flow.source_port + 1) for flow in jobs[0].flows))
    found = []
    for fabric, running, seed in (
        (clos96_fabric, jobs, 1),
        (clos96_fabric, jobs, 2),
        (cut, jobs, 2),
        (cut, [other, *jobs[1:]], 2),
    ):
        found.append(kept.of(fabric, by_name(running), seed))
        assert found[-1] == {job.name: hashed(fabric, job, seed) for job in running}
    assert all(one != other for one, other in pairwise(found))
