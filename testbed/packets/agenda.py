"""A heap of times; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.packets.state import State


@compiled_in_place
def plan(state: State, at_s: float, what: int) -> None:
    """Let ``what`` happen at ``at_s``."""
    events = state.agenda
    place = state.counters.planned[0]
    state.counters.planned[0] += 1
    while place > 0:
        parent = (place - 1) // 2
        if events[parent].at_s <= at_s:
            break
        events[place].at_s, events[place].what = events[parent].at_s, events[parent].what
        place = parent
    events[place].at_s, events[place].what = at_s, what


@compiled_in_place
def take_first(state: State) -> int:
    """Remove what happens first, and return it."""
    events = state.agenda
    found = events[0].what
    state.counters.planned[0] -= 1
    count = state.counters.planned[0]
    at_s, what = events[count].at_s, events[count].what
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and events[child + 1].at_s < events[child].at_s:
            child += 1
        if events[child].at_s >= at_s:
            break
        events[place].at_s, events[place].what = events[child].at_s, events[child].what
        place = child
    events[place].at_s, events[place].what = at_s, what
    return int(found)
