"""Rates under strict priority and max-min fairness, against an independent slow reference in fractions."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.fluid.maxmin import FULL, MAX_MIN, rates

Ways = list[list[int]]
Case = tuple[list[int], Ways, list[Fraction], list[Fraction], list[int]]
"""Levels, ways and limits of flows, capacities of links, weights of flows."""


def reference(
    levels: list[int], ways: Ways, limits: list[Fraction], capacity: list[Fraction], weights: list[int]
) -> list[Fraction]:
    """Water filling by the definition: the most loaded link of a level freezes its flows at their weighted shares."""
    free, found = list(capacity), [Fraction(0)] * len(levels)
    for level in sorted(set(levels)):
        rising = {flow for flow, its in enumerate(levels) if its == level}
        while rising:
            shares = {
                link: (free[link], sum(weights[flow] for flow in rising if link in ways[flow]))
                for link in range(len(free))
                if any(link in ways[flow] for flow in rising)
            }
            fair = min(left / users for left, users in shares.values())
            bounded = {flow for flow in rising if limits[flow] <= fair * weights[flow]}
            if bounded:  # a flow that wants less than its share gets it, and leaves the rest
                flow = min(bounded, key=lambda one: (limits[one] / weights[one], one))
                found[flow], stopped = limits[flow], {flow}
            else:
                link = min(shares, key=lambda one: (shares[one][0] / shares[one][1], one))
                stopped = {flow for flow in rising if link in ways[flow]}
                for flow in stopped:
                    found[flow] = fair * weights[flow]
            for flow in stopped:
                for used in ways[flow]:
                    free[used] -= found[flow]
            rising -= stopped
    return found


def computed(
    levels: list[int],
    ways: Ways,
    limits: list[float],
    capacity: list[float],
    after: list[int] | None = None,
    weights: list[int] | None = None,
    parts: list[list[float]] | None = None,
) -> list[float]:
    width = max(len(way) for way in ways)
    table = np.array([way + [-1] * (width - len(way)) for way in ways], np.int64)
    whole = parts or [[1.0] * len(way) for way in ways]
    shares = np.array([part + [0.0] * (width - len(part)) for part in whole])
    out = np.zeros(len(levels))
    follows = np.array(after if after is not None else [-1] * len(levels), np.int64)
    sending = np.ones(len(levels), np.bool_)
    heavy = np.array(weights or [1] * len(levels), float)
    bounds, room = np.array(limits, float), np.array(capacity)
    rates(sending, np.array(levels, np.int64), table, shares, bounds, heavy, follows, room, out, MAX_MIN)
    return [float(rate) for rate in out]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    links = draw(st.integers(1, 5))
    flows = draw(st.integers(1, 7))
    capacity = [Fraction(draw(st.integers(1, 40))) for _ in range(links)]
    ways = [draw(st.lists(st.integers(0, links - 1), min_size=1, max_size=links, unique=True)) for _ in range(flows)]
    limits = [Fraction(draw(st.integers(1, 60)), 2) for _ in range(flows)]
    levels, weights = ([draw(st.integers(least, most)) for _ in range(flows)] for least, most in ((0, 2), (1, 4)))
    return levels, ways, limits, capacity, weights


@given(cases())
@settings(max_examples=300, deadline=None)
def test_rates_are_those_of_the_definition(case: Case) -> None:
    levels, ways, limits, capacity, weights = case
    expected = reference(levels, ways, limits, capacity, weights)
    bounds = [float(limit) for limit in limits]
    found = computed(levels, ways, bounds, [float(each) for each in capacity], weights=weights)
    assert np.allclose(found, [float(rate) for rate in expected], rtol=1e-7, atol=1e-6)


@given(cases())
@settings(max_examples=100, deadline=None)
def test_no_link_carries_more_than_it_can_and_no_flow_exceeds_its_limit(case: Case) -> None:
    levels, ways, limits, capacity, weights = case
    bounds = [float(limit) for limit in limits]
    found = computed(levels, ways, bounds, [float(each) for each in capacity], weights=weights)
    for link, most in enumerate(capacity):
        assert sum(rate for rate, way in zip(found, ways, strict=True) if link in way) <= float(most) * (1 + 1e-9)
    assert all(rate <= float(limit) * (1 + FULL) for rate, limit in zip(found, limits, strict=True))


def test_a_lower_level_gets_what_the_higher_leaves() -> None:
    assert computed([0, 1, 1], [[0], [0], [0]], [6.0, np.inf, np.inf], [10.0]) == [6.0, 2.0, 2.0]


def test_a_flow_that_has_caught_up_is_no_faster_than_the_one_it_follows() -> None:
    assert computed([0, 0], [[0], [1]], [np.inf, np.inf], [4.0, 10.0], after=[-1, 0]) == [4.0, 4.0]


def test_what_a_follower_leaves_goes_to_others() -> None:
    found = computed([0, 0, 0], [[0], [1], [1]], [np.inf] * 3, [2.0, 10.0], after=[-1, 0, -1])
    assert np.allclose(found, [2.0, 2.0, 8.0])


def test_a_closed_ring_that_has_caught_up_runs_at_its_slowest_link() -> None:
    found = computed([0, 0, 0], [[0], [1], [2]], [np.inf] * 3, [5.0, 3.0, 9.0], after=[2, 0, 1])
    assert np.allclose(found, [3.0, 3.0, 3.0])


def test_a_ring_takes_what_another_ring_cannot_use() -> None:
    # The first flow of ring a shares link 0 with one of ring b, which link 3 holds at 1.
    ways = [[0], [1], [0], [3]]
    found = computed([0] * 4, ways, [np.inf] * 4, [4.0, 9.0, 9.0, 1.0], after=[1, 0, 3, 2])
    assert np.allclose(found, [3.0, 3.0, 1.0, 1.0])


def test_a_follower_at_a_higher_level_is_no_faster_than_its_leader_below() -> None:
    found = computed([0, 1, 1], [[0], [1], [0]], [np.inf] * 3, [10.0, 4.0], after=[1, -1, -1])
    assert np.allclose(found, [4.0, 4.0, 6.0])


def test_flows_share_a_link_by_their_weights() -> None:
    assert computed([0, 0], [[0], [0]], [np.inf, np.inf], [8.0], weights=[1, 3]) == [2.0, 6.0]


def test_a_flow_on_two_paths_is_as_fast_as_both_together() -> None:
    """Link 0 is its NIC, links 1 and 2 are the paths; another flow has link 1 to itself beside it."""
    alone = computed([0], [[0, 1, 2]], [inf], [10.0, 4.0, 4.0], parts=[[1.0, 0.5, 0.5]])
    assert alone == pytest.approx([8.0])
    beside = computed([0, 0], [[0, 1, 2], [1]], [inf, inf], [10.0, 4.0, 4.0], parts=[[1.0, 0.5, 0.5], [1.0]])
    assert beside == pytest.approx([8.0 / 3, 8.0 / 3])


def test_the_slowest_of_its_paths_bounds_a_flow_that_is_spread_evenly() -> None:
    assert computed([0], [[0, 1]], [inf], [4.0, 1.0], parts=[[0.5, 0.5]]) == pytest.approx([2.0])
