"""Whom a decision tells something else: never one too few, whatever came before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from controller.decision import Decision
from controller.schedulers.common.paths_by_job import PathsByJob
from testbed.engines.replay.changed_jobs import ChangedJobs
from testbed.engines.replay.running_job import ReplayedJob

PATHS = {job: [{f"{job}/0": (f"{job}->{way}",)} for way in range(2)] for job in "abcd"}
SAID = st.tuples(st.integers(0, 1), st.integers(0, 2))
"""Of a job: which of its paths, and its level."""
MOMENT = st.tuples(st.dictionaries(st.sampled_from("abcd"), SAID), st.booleans())


def running(names: Any) -> dict[str, ReplayedJob]:
    jobs = {name: SimpleNamespace(name=name, traffic=SimpleNamespace(sends=name != "d")) for name in names}
    return cast("dict[str, ReplayedJob]", jobs)


@given(st.lists(MOMENT, min_size=1, max_size=6))
def test_who_came_or_hears_something_else_is_told(
    history: list[tuple[dict[str, tuple[int, int]], bool]],
) -> None:
    told, before = ChangedJobs(), dict[str, tuple[int, int]]()
    for said, by_job in history:
        by_name = {job: PATHS[job][way] for job, (way, _) in said.items()}
        flat = {flow: path for paths in by_name.values() for flow, path in paths.items()}
        paths = PathsByJob(by_name) if by_job else flat
        jobs = running(said)
        come = [jobs[name] for name in said if name not in before]
        found = told.by(Decision(paths=paths, levels={job: level for job, (_, level) in said.items()}), jobs, come)
        assert set(found) >= {job for job in said if job != "d" and before.get(job) != said[job]}
        assert set(found) <= said.keys() - {"d"}
        before = said
