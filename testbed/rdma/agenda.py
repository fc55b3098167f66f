"""A heap of times with four children each; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.state import KINDS, State


@compiled_in_place
def plan(state: State, at_s: float, kind: int, number: int) -> None:
    """Let ``kind`` happen to ``number`` at ``at_s``."""
    events = state.agenda
    place = state.counters.planned[0]
    state.counters.planned[0] += 1
    while place > 0:
        parent = (place - 1) // 4
        if events[parent].at_s <= at_s:
            break
        events[place].at_s, events[place].what = events[parent].at_s, events[parent].what
        place = parent
    events[place].at_s, events[place].what = at_s, number * KINDS + kind


@compiled_in_place
def take_first(state: State) -> int:
    """Remove what happens first, and return it."""
    events = state.agenda
    found = events[0].what
    state.counters.planned[0] -= 1
    count = state.counters.planned[0]
    at_s, what = events[count].at_s, events[count].what
    place = 0
    while True:
        child = 4 * place + 1
        if child >= count:
            break
        earliest = events[child].at_s
        for other in range(child + 1, min(child + 4, count)):
            if events[other].at_s < earliest:
                child, earliest = other, events[other].at_s
        if earliest >= at_s:
            break
        events[place].at_s, events[place].what = earliest, events[child].what
        place = child
    events[place].at_s, events[place].what = at_s, what
    return int(found)
