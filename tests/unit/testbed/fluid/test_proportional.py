"""Rates of flows with fixed windows: proportionally fair inside a level, what higher levels leave between levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.fluid.maxmin import MAX_MIN, Floats, rates
from testbed.fluid.proportional import AT_OWN_NIC

Ways = list[list[int]]


def shared(
    ways: Ways,
    capacity: list[float],
    levels: list[int] | None = None,
    limits: list[float] | None = None,
    after: list[int] | None = None,
    proportional: bool = True,
    weights: list[float] | None = None,
    guess: list[float] | None = None,
    nics: bool = True,
) -> Floats:
    """``nics``: each flow has a NIC of its own that is never full; otherwise the first link of its way is its NIC."""
    flows = len(ways)
    if nics:
        ways = [[len(capacity) + flow, *way] for flow, way in enumerate(ways)]
        capacity = [*capacity, *[1e6] * flows]
        guess = guess and [*guess, *[0.0] * flows]
    width = max(len(way) for way in ways)
    table = np.array([way + [-1] * (width - len(way)) for way in ways], np.int64)
    out = np.zeros(flows)
    rates(
        np.ones(flows, np.bool_),
        np.array(levels or [0] * flows, np.int64),
        table,
        np.ones(table.shape),
        np.array(limits or [np.inf] * flows),
        np.array(weights or [1.0] * flows),
        np.array(after or [-1] * flows, np.int64),
        np.array(capacity),
        out,
        np.tile(np.array(guess or [0.0] * len(capacity)), (2, 1)) if proportional else MAX_MIN,
    )
    return out


def test_who_waits_in_two_queues_gets_half_of_what_the_others_get() -> None:
    assert shared([[0, 1], [0], [1]], [3.0, 3.0]) == pytest.approx([1.0, 2.0, 2.0], rel=1e-4)


def test_on_one_link_all_get_the_same() -> None:
    assert shared([[0], [0], [0]], [6.0]) == pytest.approx([2.0, 2.0, 2.0], rel=1e-4)


def test_windows_of_several_sizes_share_a_link_in_proportion() -> None:
    assert shared([[0], [0]], [8.0], weights=[1.0, 3.0]) == pytest.approx([2.0, 6.0], rel=1e-4)


def test_a_link_that_is_not_full_makes_nobody_wait() -> None:
    assert shared([[0, 1], [0]], [2.0, 100.0]) == pytest.approx([1.0, 1.0], rel=1e-3)


def test_what_a_slow_sender_leaves_goes_to_the_others() -> None:
    assert shared([[0], [0]], [4.0], limits=[1.0, np.inf]) == pytest.approx([1.0, 3.0], rel=1e-4)


def test_a_lower_level_gets_what_is_left() -> None:
    assert shared([[0], [0, 1], [1]], [3.0, 3.0], levels=[1, 0, 0]) == pytest.approx([1.5, 1.5, 1.5], rel=1e-3)
    assert shared([[0], [0]], [3.0], levels=[0, 1])[1] == pytest.approx(0.0, abs=1e-6)


def test_a_flow_that_forwards_is_as_fast_as_what_it_forwards_and_the_rest_goes_to_others() -> None:
    assert shared([[0], [1], [1]], [1.0, 4.0], after=[-1, 0, -1]) == pytest.approx([1.0, 1.0, 3.0], rel=1e-3)


def test_a_flow_that_waits_in_its_own_nic_and_behind_another_one_has_only_a_part_of_its_window_there() -> None:
    """Link 0 is the NIC of the first two, link 1 that of the third; the first and the third meet at link 2."""
    found = shared([[0, 2], [0], [1, 2]], [1.0, 1.0, 1.0], nics=False)
    here = 1.0 / (2.0 + AT_OWN_NIC)
    assert found == pytest.approx([here, 1.0 - here, 1.0 - here], rel=1e-3)


ways_of_flows = st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=4).map(sorted), min_size=1, max_size=12)


@given(ways_of_flows, st.lists(st.floats(0.5, 8.0), min_size=6, max_size=6), st.integers(0, 1000))
def test_no_other_rates_have_a_larger_sum_of_relative_changes(ways: Ways, capacity: list[float], seed: int) -> None:
    """The definition of proportional fairness (Kelly 1997): any other rates lose more, relatively, than they gain."""
    found = shared(ways, capacity)
    for link, most in enumerate(capacity):
        assert sum(rate for rate, way in zip(found, ways, strict=True) if link in way) <= most * (1 + 1e-9)
    random = np.random.default_rng(seed)
    for other in (shared(ways, capacity, proportional=False), random.uniform(0.01, 1.0, len(ways))):
        loads = [sum(rate for rate, way in zip(other, ways, strict=True) if link in way) for link in range(6)]
        fitted = other / max(load / most for load, most in zip(loads, capacity, strict=True))
        assert float(((fitted - found) / found).sum()) <= 1e-3 * len(ways)


@given(ways_of_flows, st.lists(st.floats(0.5, 8.0), min_size=6, max_size=6), st.lists(st.floats(0, 9), min_size=6))
def test_where_the_search_begins_does_not_decide_what_it_finds(
    ways: Ways, capacity: list[float], guess: list[float]
) -> None:
    assert shared(ways, capacity, guess=guess[:6]) == pytest.approx(shared(ways, capacity), rel=5e-3)


@given(st.integers(2, 40), st.integers(1, 5), st.integers(0, 10_000))
def test_a_link_is_full_or_nobody_on_it_waits_for_it(flows: int, hops: int, seed: int) -> None:
    """Large random networks, four flows at a NIC: each flow below its limit crosses a full link."""
    random = np.random.default_rng(seed)
    ways = [[20 + flow // 4, *sorted(random.choice(20, hops, replace=False).tolist())] for flow in range(flows)]
    capacity, limits = random.uniform(1, 8, 30), random.uniform(0.1, 4, flows)
    weights = random.uniform(0.5, 2, flows).tolist()
    found = shared(ways, capacity.tolist(), limits=limits.tolist(), weights=weights, nics=False)
    loads = np.array([sum(rate for rate, way in zip(found, ways, strict=True) if link in way) for link in range(30)])
    assert (loads <= capacity * (1 + 1e-9)).all()
    for rate, limit, way in zip(found, limits, ways, strict=True):
        assert rate >= limit * (1 - 1e-5) or any(loads[link] >= capacity[link] * (1 - 1e-5) for link in way)
