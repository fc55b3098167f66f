"""Properties of managers in replays of random traces: some of those that ``benchmarks.manager_properties`` replays."""

from __future__ import annotations

import pytest

from benchmarks.manager_cases import CASES, random_trace
from benchmarks.manager_properties import check


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("jump", [True, False])
def test_random_traces_under_every_manager_break_no_property(name: str, jump: bool) -> None:
    for seed in (0, 5):
        assert check(CASES[name], seed, jump=jump).problems == ()


def test_random_traces_have_jobs_of_all_kinds() -> None:
    jobs = [job for seed in (0, 5) for job in random_trace(seed)]
    assert {job.attempts for job in jobs} == {1, 2, 3}
    assert any(job.elastic for job in jobs) and any(job.opportunistic for job in jobs)
