"""Who shares links and who may slow whom, kept up to date: against the definitions, whatever came before."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.replay.rates.link_users import IN_TURNS, LinkUsers
from testbed.fluid.fluids import Contention
from workloads.periodic_job import PeriodicJob

LINKS, GPUS = 6, 2
Job = tuple[dict[int, float], int]
"""Link -> share at full speed, and level. The numbers behind the links are those of GPUs."""

JOBS = st.tuples(
    st.dictionaries(st.integers(0, LINKS - 1), st.sampled_from([0.1, 0.3, 0.45, 0.6, 1.0]), max_size=5)
    | st.dictionaries(st.integers(LINKS, LINKS + GPUS - 1), st.just(IN_TURNS), max_size=1),
    st.integers(0, 2),
)
STEPS = st.lists(st.dictionaries(st.sampled_from("abcdefghijkl"), JOBS | st.none(), max_size=12), max_size=4)
"""What happens to jobs, step by step: they are put, or removed (None)."""


def beside(jobs: dict[str, Job], job: str) -> set[str]:
    return {other for other in jobs if other != job and not jobs[other][0].keys().isdisjoint(jobs[job][0])}


def slowing(jobs: dict[str, Job], job: str) -> set[str]:
    links, level = jobs[job]
    found: set[str] = set()
    for link in links:
        users = [name for name, (own, _) in jobs.items() if link in own]
        if link < LINKS:
            users = [name for name in users if jobs[name][1] <= level]
        if sum(jobs[name][0][link] for name in users) > 1 + 1e-9:
            found.update(users)
    return found - {job}


@given(STEPS)
def test_whoever_comes_goes_and_changes_the_answers_are_those_for_the_jobs_there_are(
    steps: list[dict[str, Job | None]],
) -> None:
    users, jobs = LinkUsers(LINKS + GPUS), dict[str, Job]()
    for step in steps:
        before = {name: beside(jobs, name) for name in jobs}
        for name, job in step.items():
            if job is None:
                users.remove(name)
                jobs.pop(name, None)
            else:
                links = sorted(job[0])
                users.put(name, np.array(links, np.int64), np.array([job[0][link] for link in links]), job[1])
                jobs[name] = job
        now = {name: beside(jobs, name) for name in jobs}
        told = {name for name in step if name in jobs}
        told |= {other for name in step for other in before.get(name, set()) | now.get(name, set()) if other in jobs}
        affected = users.affected()
        assert told <= set(affected) <= jobs.keys() and len(set(affected)) == len(affected)
        assert users.affected() == []
        found = dict(zip(jobs, users.who_slows(list(jobs)), strict=True))
        assert {name: set(above) for name, (above, _) in found.items()} == {name: slowing(jobs, name) for name in jobs}
        assert {name: meets for name, (_, meets) in found.items()} == {name: bool(those) for name, those in now.items()}
        assert all(len(set(above)) == len(above) for above, _ in found.values())


@given(st.lists(JOBS, min_size=1, max_size=8), st.data())
def test_links_shared_among_some_are_those_of_their_fluids(drawn: list[Job], data: st.DataObject) -> None:
    users = LinkUsers(LINKS + GPUS)
    fluids: dict[str, PeriodicJob[int]] = {}
    for number, (loads, level) in enumerate(drawn):
        name = f"job {number}"
        fluid = PeriodicJob(1.0, 0.5, {link: share for link, share in loads.items() if link < LINKS}, level=level)
        shares = [share / (fluid.communication_s or 1.0) for share in loads.values()]
        users.put(name, np.array(list(loads), np.int64), np.array(shares), level)
        fluids[name] = fluid
    some = data.draw(st.lists(st.sampled_from(list(fluids)), min_size=1, unique=True))
    starts, links, shared, count = users.shared_among(some)
    on = Contention.of([fluids[name] for name in some])
    assert (starts.tolist(), links.tolist(), shared.tolist(), count) == (
        on.starts.tolist(),
        on.links.tolist(),
        on.shares.tolist(),
        on.count,
    )


@given(STEPS)
def test_groups_are_those_whom_links_and_gpus_join(steps: list[dict[str, Job | None]]) -> None:
    users, jobs = LinkUsers(LINKS + GPUS), dict[str, Job]()
    for name, job in (item for step in steps for item in step.items()):
        if job is not None:
            users.put(name, np.array(list(job[0]), np.int64), np.array(list(job[0].values()), float), job[1])
            jobs[name] = job
    groups = users.joined(jobs)
    assert sorted(name for group in groups for name in group) == sorted(jobs)
    for group in groups:
        reached, edge = {min(group)}, [min(group)]
        while edge:
            new = beside(jobs, edge.pop()) - reached
            reached |= new
            edge += new
        assert reached == group
