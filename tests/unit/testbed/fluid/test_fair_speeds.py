"""Fair speeds after a change, found for few jobs: those of filling all links again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.fluid.fair_speeds import Links, share_fairly
from testbed.fluid.fluids import Contention
from testbed.fluid.maxmin import Flags, Floats, Integers
from testbed.fluid.rates import speeds
from testbed.fluid.shared_links import Users, that_can_be_full, users_of
from workloads.periodic_job import PeriodicJob


def sends(loads: dict[int, float], level: int) -> PeriodicJob[int]:
    return PeriodicJob(compute_s=1.0, lead_s=0.5, loads=loads, level=level)


def some_jobs(levels: int) -> st.SearchStrategy[list[PeriodicJob[int]]]:
    loads = st.dictionaries(st.integers(0, 5), st.floats(0.05, 1.0), min_size=1, max_size=4)
    return st.lists(st.builds(sends, loads, st.integers(0, levels - 1)), min_size=2, max_size=12)


class Speeds:
    """Jobs that begin and end to send, and their speeds."""

    def __init__(self, jobs: list[PeriodicJob[int]]) -> None:
        on = Contention.of(jobs)
        self.levels: Integers = on.levels
        self.users: Users = users_of(on.starts, on.links, on.shares, on.count)
        self.links: Links = that_can_be_full(on.starts, on.links, on.shares, self.users, on.levels)
        self.shares: Floats = np.zeros((len(jobs), on.count))
        for job in range(len(jobs)):
            own = slice(on.starts[job], on.starts[job + 1])
            self.shares[job, on.links[own]] = on.shares[own]
        self.sending: Flags = np.zeros(len(jobs), np.bool_)
        self.speed: Floats = np.zeros(len(jobs))
        self.room = np.ones(on.count), np.zeros(on.count), np.arange(len(jobs)), np.zeros(len(jobs), np.bool_)

    def toggle(self, job: int) -> None:
        """Let ``job`` begin or end; tell only it, or those beside whom it ends."""
        self.sending[job] = not self.sending[job]
        self.speed[job] = 0.0
        beside = (self.shares[:, self.shares[job] > 0.0] > 0.0).any(axis=1)
        felt = self.sending & (np.arange(len(beside)) == job if self.sending[job] else beside)
        for level in sorted(set(self.levels.tolist())):
            who = np.flatnonzero(felt & (self.levels == level))
            for changed in self.share(who):
                below = (self.shares[:, self.shares[changed] > 0.0] > 0.0).any(axis=1) & (self.levels > level)
                felt |= below & self.sending

    def share(self, who: Integers) -> list[int]:
        changed = np.zeros(len(self.speed), np.int64)
        arguments = self.sending, self.links, self.users, self.levels, self.speed, self.room, changed
        return changed[: share_fairly(who, 0, len(who), *arguments)].tolist()

    def all_anew(self) -> list[float]:
        found = np.zeros(len(self.speed))
        speeds(sum(1 << job for job in np.flatnonzero(self.sending).tolist()), self.shares, self.levels, found)
        return found.tolist()


@pytest.mark.parametrize("levels", [1, 3])
@given(st.data())
@settings(deadline=None)
def test_who_feels_a_change_gets_the_speed_that_filling_all_links_again_gives(levels: int, data: st.DataObject) -> None:
    jobs = data.draw(some_jobs(levels))
    now = Speeds(jobs)
    for job in data.draw(st.lists(st.integers(0, len(jobs) - 1), min_size=1, max_size=20)):
        now.toggle(job)
        assert now.speed.tolist() == pytest.approx(now.all_anew(), abs=1e-9)


def test_those_whose_speed_stays_fair_are_not_looked_for() -> None:
    # 0 and 1 share a link, 2 and 3 another one, a third one has room for all: 3 slows neither 0 nor 1.
    now = Speeds(
        [sends({0: 1.0, 9: 0.2}, 0), sends({0: 1.0, 9: 0.2}, 0), sends({1: 1.0, 9: 0.2}, 0), sends({1: 1.0}, 0)]
    )
    for job in (0, 1, 2):
        now.toggle(job)
    now.sending[3] = True
    assert sorted(now.share(np.array([3]))) == [2, 3]
    assert now.speed.tolist() == [0.5, 0.5, 0.5, 0.5]
