"""What watches a run takes no more than its share of a core."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.emulation.probes.pace import GRACE_S, Pace


@pytest.mark.parametrize(("cost", "done"), [(0.003, 60), (0.030, 60), (0.045, 30), (0.1, 15)])
def test_what_costs_more_than_its_share_of_a_second_is_done_every_second_second_or_more_rarely(
    cost: float, done: int
) -> None:
    pace, times = Pace(0.03), 0
    for second in range(60):
        if pace.is_due(second):
            pace.spent(second, cost)
            times += 1
    assert times == done


@given(st.lists(st.floats(0.0, 0.5), min_size=60, max_size=60))
def test_the_share_is_kept_up_to_the_last_time_and_the_grace(costs: list[float]) -> None:
    pace, spent = Pace(0.03), [0.0]
    for second, cost in enumerate(costs):
        if pace.is_due(second):
            pace.spent(second, cost)
            spent.append(cost)
    assert sum(spent[:-1]) <= 0.03 * (len(costs) + GRACE_S * len(spent)) + 1e-9
