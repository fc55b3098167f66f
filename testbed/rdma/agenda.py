"""A heap of times with four children each; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.state import KINDS, State


@compiled_in_place
def plan(state: State, at_s: float, kind: int, number: int) -> None:
    """Let ``kind`` happen to ``number`` at ``at_s``."""
    times, whats = state.agenda
    place = state.counters.planned[0]
    state.counters.planned[0] += 1
    while place > 0:
        parent = (place - 1) // 4
        if times[parent] <= at_s:
            break
        times[place], whats[place] = times[parent], whats[parent]
        place = parent
    times[place], whats[place] = at_s, number * KINDS + kind


@compiled_in_place
def take_first(state: State) -> int:
    """Remove what happens first, and return it."""
    times, whats = state.agenda
    found = whats[0]
    state.counters.planned[0] -= 1
    count = state.counters.planned[0]
    at_s, what = times[count], whats[count]
    place = 0
    while True:
        first = 4 * place + 1
        if first >= count:
            break
        child = first
        for other in range(first + 1, min(first + 4, count)):
            if times[other] < times[child]:
                child = other
        if times[child] >= at_s:
            break
        times[place], whats[place] = times[child], whats[child]
        place = child
    times[place], whats[place] = at_s, what
    return int(found)
