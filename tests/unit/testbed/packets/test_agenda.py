"""What happens next, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.flow.networks.records import more_records
from testbed.packets.agenda import plan, take_first
from testbed.packets.state import EVENT
from tests.unit.testbed.packets.networks import network

TIMES = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=60)


@given(TIMES, TIMES)
def test_what_is_planned_first_happens_first_whenever_it_was_planned(early: list[float], later: list[float]) -> None:
    state = network(rates={"a": 1.0})._state
    times = early + later
    state = state._replace(agenda=more_records(state.agenda, EVENT, len(times)))
    for what, time in enumerate(early):
        plan(state, time, what)
    found = [take_first(state) for _ in early[::2]]
    assert [early[what] for what in found] == sorted(early)[: len(found)]
    for what, time in enumerate(later, len(early)):
        plan(state, time, what)
    rest = [take_first(state) for _ in range(int(state.counters.planned[0]))]
    assert [times[what] for what in rest] == sorted(times[what] for what in rest)
    assert sorted(found + rest) == list(range(len(times)))
