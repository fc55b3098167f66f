from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.reproduce.crux.figure_16_optimum import PathChoices, Yardstick, assignments, components
from workloads.periodic_job import PeriodicJob

TIMES = st.sampled_from([0.5, 1.0, 1.5, 2.5])


@st.composite
def small_cases(draw: st.DrawFn) -> list[PathChoices]:
    """Up to three jobs, each with two ways over links of two interchangeable switches and one common link."""
    choices = []
    for _ in range(draw(st.integers(1, 3))):
        compute, seconds, legs = draw(TIMES), draw(TIMES), draw(st.sets(st.sampled_from("abc"), min_size=1))
        candidates = tuple({f"{leg}{switch}": seconds for leg in legs} | {"core": seconds / 4} for switch in (0, 1))
        choices.append(
            PathChoices(PeriodicJob(compute, compute / 2, {}, draw(st.sampled_from([1.0, 4.0]))), candidates)
        )
    return choices


def naive(case: Yardstick, jobs: int, count: int) -> float:
    """Best utilisation over all paths and all levels, every one simulated with all jobs together."""
    every_level = list(product(range(count), repeat=jobs)) if count else list(permutations(range(jobs)))
    every_path = list(case.all_paths())
    return max(case.outcome(paths, levels).utilization for paths in every_path for levels in every_level)


@given(small_cases(), st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_the_optimum_is_that_of_the_naive_enumeration(choices: list[PathChoices], count: int) -> None:
    case = Yardstick(choices)
    value, paths = case.best_paths(count)
    assert value == pytest.approx(naive(case, len(choices), count), rel=3e-3)
    levels = case.best_levels(paths, count)[1] if count else case.best_order(paths)[1]
    assert case.utilization(paths, levels) == pytest.approx(value)


@given(small_cases(), st.lists(st.integers(0, 2), min_size=3, max_size=3), st.lists(st.integers(0, 1), min_size=3))
@settings(max_examples=40, deadline=None)
def test_taking_a_case_apart_changes_nothing(choices: list[PathChoices], levels: list[int], paths: list[int]) -> None:
    case, count = Yardstick(choices), len(choices)
    whole = case.outcome(paths[:count], levels[:count]).utilization
    assert case.utilization(paths[:count], levels[:count]) == pytest.approx(whole, rel=3e-3)


def one_link(*gpus: float) -> list[PathChoices]:
    return [PathChoices(PeriodicJob(1, 1, {}, count), ({"link": 1.0},)) for count in gpus]


def test_the_job_with_most_gpus_goes_first_where_all_else_is_equal() -> None:
    case = Yardstick(one_link(1, 8, 2, 4))
    assert case.best_order((0, 0, 0, 0))[1][1] == 0
    assert case.worst_order((0, 0, 0, 0))[0] < case.best_order((0, 0, 0, 0))[0]


def test_jobs_that_share_no_link_are_simulated_once_each() -> None:
    case = Yardstick([PathChoices(PeriodicJob(1, 1), ({f"link{index}": 1.0},)) for index in range(5)])
    case.best_levels((0,) * 5, 3)
    assert case.simulations == 5


def test_interchangeable_switches_are_not_simulated_twice() -> None:
    case = Yardstick([PathChoices(PeriodicJob(1, 1), ({"a": 1.0}, {"b": 1.0})) for _ in range(2)])
    case.best_paths(0)
    assert case.simulations == 2 + 2


def test_a_link_between_two_groups_ties_them_together() -> None:
    found = components([{"a": 1.0}, {"a": 1.0, "b": 1.0}, {"b": 2.0}, {"c": 1.0}])
    assert [part.members for part in found] == [(0, 1, 2), (3,)]
    assert found[0].pairs == ((0, 1), (1, 2))


def test_a_dominated_link_does_not_count() -> None:
    strong, weak = components([{"a": 1.0, "b": 0.5}, {"a": 1.0, "b": 0.5}]), components([{"a": 1.0}, {"a": 1.0}])
    assert strong == weak


def test_levels_have_no_gaps_and_orders_are_permutations() -> None:
    assert len(list(assignments(4, 3))) == 75 - 24  # weak orders of four, less those of four levels
    assert sorted(assignments(3, 0)) == sorted(permutations(range(3)))
