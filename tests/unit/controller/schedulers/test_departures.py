"""A job that leaves moves no other without need: levels in force stay where they still order those that remain."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decider import Decider
from controller.schedulers.common.stable_levels import kept_levels
from controller.schedulers.registry import create
from topologies.clos import clos
from workloads.build import JobSpec, build_jobs
from workloads.job import Job

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=2, aggregations=1, port_rate=1e11, fabric_rate=1e11)
PLACES = [(f"h{host}g{gpu}", f"h{host + 2}g{gpu}") for host in (0, 1) for gpu in range(4)]
BY_JOB = ("crux", "crux-pa", "crux-ps-pa", "taccl-star")
"""Schedulers that give levels to jobs as they come and go."""
LEVELS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 7))


def jobs_of(sizes: list[tuple[int, int]]) -> tuple[Job, ...]:
    specs = [
        JobSpec(f"job{n}", "bert", placement=place, compute_s=c / 10, communication_bytes=g * 1e9, overlap=0.0)
        for n, ((c, g), place) in enumerate(zip(sizes, PLACES, strict=False))
    ]
    return build_jobs(specs, FABRIC)


def decided(name: str, jobs: tuple[Job, ...]) -> Decider:
    decider = Decider(FABRIC, create(name, {}, 1), 8, 1)
    for job in jobs:
        decider.arrive(job)
    return decider


@pytest.mark.parametrize("name", BY_JOB)
@pytest.mark.parametrize("leaves", [0, 1])
def test_the_job_that_stays_keeps_its_level(name: str, leaves: int) -> None:
    jobs = jobs_of([(10, 2), (5, 3)])
    decider = decided(name, jobs)
    stays = jobs[1 - leaves].name
    before = decider.decision.levels[stays]
    assert decider.depart(jobs[leaves].name).levels[stays] == before


@pytest.mark.parametrize("name", BY_JOB)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 5)), min_size=2, max_size=7), st.data())
def test_levels_change_at_a_departure_only_where_jobs_change_their_order_or_shared_one(
    name: str, sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    jobs = jobs_of(sizes)
    decider = decided(name, jobs)
    before = dict(decider.decision.levels)
    gone = data.draw(st.sampled_from(jobs)).name
    after = decider.depart(gone).levels
    stay = [job.name for job in jobs if job.name != gone]
    turned = any(before[one] < before[other] and after[one] >= after[other] for one, other in permutations(stay, 2))
    shared = len({before[each] for each in stay}) < len(stay)
    assert turned or shared or {each: after[each] for each in stay} == {each: before[each] for each in stay}


@given(LEVELS, LEVELS)
def test_levels_that_are_kept_order_jobs_as_it_is_wanted(wanted: dict[str, int], in_force: dict[str, int]) -> None:
    found = kept_levels(wanted, in_force)
    assert found.keys() == wanted.keys()
    for one, other in permutations(wanted, 2):
        assert (found[one] < found[other]) == (wanted[one] < wanted[other])
    assert found == wanted or all(found[name] == in_force[name] for name in wanted)
