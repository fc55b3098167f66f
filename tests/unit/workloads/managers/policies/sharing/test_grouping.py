"""Muri's grouping: the worked examples, and what always holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.managers.policies.sharing.grouping import Sharer, group_jobs, least_attained, srsf
from workloads.managers.policies.sharing.interleaving import (
    best_order,
    group_time,
    interleaved_speeds,
    interleaving_efficiency,
    worth_sharing,
)

times = st.integers(0, 20).map(float)


def names(groups: tuple[tuple[Sharer, ...], ...]) -> list[set[str]]:
    return [{job.name for job in group} for group in groups]


def test_jobs_that_fit_into_each_others_gaps_use_everything() -> None:
    assert group_time([(2.0, 1.0), (1.0, 2.0)]) == 3.0
    assert interleaving_efficiency([(2.0, 1.0), (1.0, 2.0)]) == 1.0


def test_two_jobs_of_one_kind_leave_a_quarter_idle() -> None:
    assert group_time([(2.0, 1.0), (2.0, 1.0)]) == 4.0
    assert interleaving_efficiency([(2.0, 1.0), (2.0, 1.0)]) == 0.75


def test_the_order_of_offsets_matters_with_more_than_two_resources() -> None:
    stages = [(5.0, 1.0, 1.0), (1.0, 5.0, 1.0), (1.0, 1.0, 5.0)]
    assert group_time(stages) == 15.0
    assert best_order(stages) == (0, 2, 1)
    assert group_time([stages[job] for job in best_order(stages)]) == 7.0


def test_more_jobs_than_resources_cannot_be_staggered() -> None:
    with pytest.raises(ValueError, match="3 jobs cannot be staggered over 2 resources"):
        group_time([(1.0, 1.0)] * 3)
    with pytest.raises(ValueError, match="the same resources"):
        group_time([(1.0, 1.0), (1.0,)])


def test_a_job_of_which_nothing_is_known_interleaves_with_nobody() -> None:
    assert interleaving_efficiency([(0.0, 0.0), (0.0, 0.0)]) == 0.0


def test_complements_are_grouped() -> None:
    jobs = [
        Sharer("c1", 1, (9.0, 1.0)),
        Sharer("c2", 1, (8.0, 2.0)),
        Sharer("n1", 1, (1.0, 9.0)),
        Sharer("n2", 1, (2.0, 8.0)),
    ]
    assert names(group_jobs(jobs, 2, srsf).groups) == [{"c1", "n1"}, {"c2", "n2"}]


def test_only_jobs_with_as_many_gpus_share() -> None:
    jobs = [Sharer("a", 2, (2.0, 1.0)), Sharer("b", 1, (1.0, 2.0)), Sharer("c", 1, (2.0, 1.0))]
    assert names(group_jobs(jobs, 3, srsf).groups) == [{"a"}, {"b", "c"}]


def test_nobody_shares_while_there_is_room_for_all() -> None:
    jobs = [Sharer("a", 1, (2.0, 1.0)), Sharer("b", 1, (1.0, 2.0))]
    assert names(group_jobs(jobs, 2, srsf).groups) == [{"a"}, {"b"}]


def test_merging_stops_as_soon_as_all_fit() -> None:
    jobs = [Sharer(str(index), 1, (1.0, 1.0)) for index in range(4)]
    assert sorted(map(len, group_jobs(jobs, 3, srsf).groups)) == [1, 1, 2]


def test_four_jobs_share_four_resources_after_two_rounds() -> None:
    stages = [(1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0)]
    (group,) = group_jobs([Sharer(str(index), 1, each) for index, each in enumerate(stages)], 1, srsf).groups
    assert len(group) == 4


def test_no_more_jobs_share_than_allowed() -> None:
    jobs = [Sharer(str(index), 1, (1.0, 1.0, 1.0, 1.0)) for index in range(4)]
    grouping = group_jobs(jobs, 1, srsf, most_jobs=2)
    assert (names(grouping.groups), len(grouping.waiting)) == ([{"0", "1"}], 2)
    assert names(group_jobs(jobs, 1, srsf).groups) == [{"0", "1", "2", "3"}]


def test_a_job_without_a_profile_shares_with_nobody() -> None:
    jobs = [Sharer("known", 1, (2.0, 1.0)), Sharer("unknown", 1, (0.0, 0.0))]
    assert names(group_jobs(jobs, 1, srsf).groups) == [{"known"}]


def test_jobs_are_admitted_with_those_of_their_size_that_could_join_them() -> None:
    four = [Sharer(f"four{index}", 4, (1.0, 1.0), remaining_s=1.0 + index) for index in range(3)]
    one = Sharer("one", 1, (1.0, 1.0), remaining_s=100.0)
    grouping = group_jobs([*four, one], 4, srsf)
    assert names(grouping.groups) == [{"four0", "four1"}]
    assert [job.name for job in grouping.waiting] == ["four2", "one"]


def test_jobs_that_share_run_as_fast_as_their_group() -> None:
    assert interleaved_speeds([(2.0, 1.0), (1.0, 2.0)]) == (1.0, 1.0)
    assert interleaved_speeds([(2.0, 1.0), (2.0, 1.0)]) == (0.75, 0.75)
    assert interleaved_speeds([(0.0, 0.0, 2.0, 0.0), (0.0, 0.0, 6.0, 0.0)]) == (0.25, 0.75)
    assert interleaved_speeds([(1.0, 1.0), (0.0, 0.0)]) == ()


def test_muri_s_admits_the_shortest_remaining_service_and_muri_l_the_least_attained() -> None:
    jobs = [
        Sharer("old", 1, (1.0, 1.0), remaining_s=1.0, attained_s=9.0),
        Sharer("new", 1, (1.0, 1.0), remaining_s=9.0, attained_s=0.0),
        Sharer("wide", 2, (1.0, 1.0), remaining_s=1.0, attained_s=1.0),
    ]
    assert [job.name for job in sorted(jobs, key=srsf)] == ["old", "wide", "new"]
    assert [job.name for job in sorted(jobs, key=least_attained)] == ["new", "wide", "old"]
    short, least = group_jobs(jobs[:2], 1, srsf), group_jobs([*jobs[:2], Sharer("x", 1, (1.0, 1.0), 5.0, 5.0)], 1, srsf)
    assert (names(short.groups), short.waiting) == ([{"old", "new"}], ())
    assert names(least.groups) == [{"old", "x"}]
    assert [job.name for job in least.waiting] == ["new"]


def test_a_group_slower_than_its_jobs_in_turn_is_undone() -> None:
    alike = [(9.0, 1.0), (9.0, 1.0)]
    assert worth_sharing(alike)
    assert not worth_sharing(alike, overheads=(1.0, 1.5))
    jobs = [Sharer(str(index), 1, each) for index, each in enumerate(alike)]
    grouping = group_jobs(jobs, 1, srsf, overheads=(1.0, 1.5))
    assert (names(grouping.groups), grouping.waiting) == ([{"0"}], (jobs[1],))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), times, times), max_size=9), st.integers(1, 6))
def test_every_job_is_in_one_group_or_waits_and_groups_fit(jobs: list[tuple[int, float, float]], gpus: int) -> None:
    sharers = [Sharer(str(index), size, (one, other)) for index, (size, one, other) in enumerate(jobs)]
    grouping = group_jobs(sharers, gpus, srsf)
    named = [job.name for group in grouping.groups for job in group] + [job.name for job in grouping.waiting]
    assert sorted(named) == sorted(job.name for job in sharers)
    assert sum(group[0].gpus for group in grouping.groups) <= gpus
    assert all(len({job.gpus for job in group}) == 1 and len(group) <= 2 for group in grouping.groups)


@given(st.lists(st.tuples(times, times, times), min_size=1, max_size=3))
def test_efficiency_is_a_share_and_a_group_never_slower_than_turns(stages: list[tuple[float, ...]]) -> None:
    assert 0.0 <= interleaving_efficiency(stages) <= 1.0 + 1e-12
    assert worth_sharing(stages)
