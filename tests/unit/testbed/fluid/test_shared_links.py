"""Links that may slow a job, and whom a job may slow: against their definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.fluid.fluids import Contention
from testbed.fluid.maxmin import Integers
from testbed.fluid.shared_links import that_can_be_full, users_of, whom_they_slow
from testbed.fluid.steady_state import settle
from workloads.periodic_job import PeriodicJob

JOBS = st.lists(
    st.builds(
        PeriodicJob,
        compute_s=st.just(1.0),
        lead_s=st.just(0.5),
        loads=st.dictionaries(st.integers(0, 4), st.sampled_from([0.1, 0.3, 0.45, 0.6, 1.0]), min_size=1, max_size=4),
        level=st.integers(0, 2),
    ),
    min_size=2,
    max_size=8,
)


def rows(starts: Integers, numbers: Integers) -> list[list[int]]:
    return [numbers[starts[row] : starts[row + 1]].tolist() for row in range(len(starts) - 1)]


@given(JOBS)
def test_a_link_slows_those_who_with_all_of_their_and_more_urgent_levels_could_fill_it(jobs: list[PeriodicJob]) -> None:
    on = Contention.of(jobs)
    share = np.zeros((len(jobs), on.count))
    for job, links in enumerate(rows(on.starts, on.links)):
        share[job, links] = on.shares[on.starts[job] : on.starts[job + 1]]
    users = users_of(on.starts, on.links, on.shares, on.count)
    starts, links, shares = that_can_be_full(on.starts, on.links, on.shares, users, on.levels)
    can_be_full = [share[on.levels <= job.level].sum(axis=0) > 1 + 1e-9 for job in jobs]
    assert rows(starts, links) == [
        [link for link in own if full[link]] for own, full in zip(rows(on.starts, on.links), can_be_full, strict=True)
    ]
    assert shares.tolist() == [share[job, link] for job, own in enumerate(rows(starts, links)) for link in own]
    assert rows(*whom_they_slow(starts, links, users, on.levels)) == [
        [
            other
            for other, full in enumerate(can_be_full)
            if other != job and on.levels[other] >= on.levels[job] and (full & (share[[job, other]] > 0).all(0)).any()
        ]
        for job in range(len(jobs))
    ]


@given(JOBS)
@settings(deadline=None)
def test_a_link_that_nobody_can_fill_changes_no_rate(jobs: list[PeriodicJob]) -> None:
    """Each of the jobs loads it with less than its part of its own communication."""
    part = 0.99 / len(jobs)
    also = [replace(job, loads={**job.loads, 100: part * job.communication_s}) for job in jobs]
    assert settle(also, 20.0).rates == pytest.approx(settle(jobs, 20.0).rates, rel=1e-12)
