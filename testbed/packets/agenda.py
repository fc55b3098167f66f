"""A heap of times; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.packets.state import PLANNED, State


@compiled_in_place
def plan(state: State, time: float, what: int) -> None:
    """Let ``what`` happen at ``time``."""
    times, whats = state.agenda
    place = state.counters[PLANNED]
    state.counters[PLANNED] += 1
    while place > 0:
        parent = (place - 1) // 2
        if times[parent] <= time:
            break
        times[place], whats[place] = times[parent], whats[parent]
        place = parent
    times[place], whats[place] = time, what


@compiled_in_place
def take_first(state: State) -> int:
    """Remove what happens first, and return it."""
    times, whats = state.agenda
    found = whats[0]
    state.counters[PLANNED] -= 1
    count = state.counters[PLANNED]
    time, what = times[count], whats[count]
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[place], whats[place] = times[child], whats[child]
        place = child
    times[place], whats[place] = time, what
    return int(found)
