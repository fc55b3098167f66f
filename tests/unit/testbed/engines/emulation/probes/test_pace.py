"""What watches a run takes no more than its share of a core."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.emulation.probes.pace import GRACE_S, Pace


def times_done(costs: list[float]) -> list[int]:
    """The seconds in which it is done, one cost for each second."""
    pace, done = Pace(0.03), []
    for second, cost in enumerate(costs):
        if pace.is_due(second):
            pace.spent(second, cost)
            done.append(second)
    return done


@pytest.mark.parametrize(("cost", "every"), [(0.003, 1), (0.030, 1), (0.045, 2), (0.1, 4)])
def test_what_costs_more_than_its_share_of_a_second_is_done_more_rarely(cost: float, every: int) -> None:
    assert times_done([cost] * 60) == [0, *range(1, 60, every)]  # the first time is not counted


def test_a_single_costly_time_changes_nothing() -> None:
    assert times_done([0.003] * 10 + [0.5] + [0.003] * 10) == list(range(21))


@given(st.floats(0.001, 0.5))
def test_the_share_is_kept(cost: float) -> None:
    done = times_done([cost] * 100)
    assert (len(done) - 2) * cost <= 0.03 * (100 + GRACE_S * len(done))
