"""Flows that keep a window in flight, wait in their own NIC and forward slices, as connections do; compiled."""

from __future__ import annotations

import numpy as np

from testbed.fluid.compiled import compiled_in_place
from testbed.packets.agenda import plan
from testbed.packets.links import forward
from testbed.packets.state import (
    AFTER,
    ALARM,
    ARRIVED,
    AT_NIC,
    BASE,
    FIRST_TO_TRY,
    FOLLOWER,
    IN_FLIGHT,
    LEAD,
    LEVEL,
    LIMIT,
    NEWEST,
    NEXT_S,
    NONE,
    OLDEST,
    PATH,
    PERIOD,
    REACHED,
    SENDING,
    SENT,
    SHORT,
    SIZE,
    SLICE,
    THROUGH,
    TO_TRY,
    TO_TRY_COUNT,
    TOTAL,
    UNACKNOWLEDGED,
    UNTIL,
    UNUSED,
    WINDOWS,
    State,
)

_NOTHING = 1e-12
"""Share of a message that is nothing."""
ROUNDING = 1e-6
"""Share of a full packet below which bytes are rounding."""


@compiled_in_place
def try_later(state: State, flow: int) -> None:
    """Look soon whether ``flow`` can send."""
    if not state.flows.numbers[flow, TO_TRY]:
        state.flows.numbers[flow, TO_TRY] = 1
        counters, room = state.counters, len(state.to_try)
        state.to_try[(counters[FIRST_TO_TRY] + counters[TO_TRY_COUNT]) % room] = flow
        counters[TO_TRY_COUNT] += 1


@compiled_in_place
def note_reached(state: State, flow: int) -> None:
    """Something has happened to ``flow`` that the caller of the simulation wants to know."""
    state.reached[state.counters[REACHED]] = flow
    state.counters[REACHED] += 1


@compiled_in_place
def available(state: State, flow: int) -> float:
    """Bytes that the message may send now: all that is left, or what has come in for it to forward, in whole slices.

    The end of the message that it forwards counts as the end of a slice.
    """
    values, numbers = state.flows.values, state.flows.numbers
    left = values[flow, SIZE] - values[flow, SENT]
    leader = numbers[flow, AFTER]
    if leader < 0:
        return float(left)
    slice_size, rounding = values[flow, SLICE], ROUNDING * state.rules.payload
    came = values[leader, TOTAL] - values[flow, BASE]
    if numbers[leader, THROUGH] and came >= values[leader, SIZE] - rounding:
        return float(left)
    whole = np.floor((came + rounding) / slice_size) * slice_size
    return float(min(left, values[flow, LEAD] + whole - values[flow, SENT]))


@compiled_in_place
def window(state: State, flow: int) -> float:
    """Bytes that ``flow`` may have in flight, by what has arrived of it (``workloads.iteration.byte_windows``)."""
    count = state.flows.numbers[flow, WINDOWS]
    if count == 1:
        return float(state.flows.windows[flow, 0])
    period = state.flows.values[flow, PERIOD]
    done = state.flows.values[flow, TOTAL] % period
    part = min(int(done * count / period), count - 1)
    return float(min(state.flows.windows[flow, part], period - done + state.flows.windows[flow, 0]))


@compiled_in_place
def has_to_pause(state: State, flow: int, size: float, now: float) -> bool:
    """Whether the limit of ``flow`` does not let it send yet; if it does, ``size`` bytes count."""
    values = state.flows.values
    limit = values[flow, LIMIT]
    if limit == np.inf:
        return False
    if values[flow, NEXT_S] > now:
        if not state.flows.numbers[flow, ALARM]:
            state.flows.numbers[flow, ALARM] = 1
            plan(state, values[flow, NEXT_S], len(state.links.rate) + flow)
        return True
    values[flow, NEXT_S] = max(values[flow, NEXT_S], now) + size / limit
    return False


@compiled_in_place
def next_size(state: State, flow: int) -> float:
    """Return the payload of the next packet of ``flow``, 0 if it has nothing to send or too much in flight.

    A packet does not reach beyond the bytes at which an event comes: those after them may have another level.
    """
    values, payload = state.flows.values, state.rules.payload
    rounding, left = ROUNDING * payload, values[flow, SIZE] - values[flow, SENT]
    size = min(payload, available(state, flow), values[flow, UNTIL] - values[flow, SENT])
    if left - size <= rounding:
        size = left
    elif size <= rounding:
        return 0.0
    if left <= _NOTHING * values[flow, SIZE] or values[flow, IN_FLIGHT] + size > window(state, flow) + rounding:
        return 0.0
    return float(size)


@compiled_in_place
def new_packet(state: State, flow: int, size: float) -> int:
    """Put the next ``size`` bytes of ``flow`` into a packet."""
    packets, values, numbers, counters = state.packets, state.flows.values, state.flows.numbers, state.counters
    counters[UNUSED] -= 1
    packet = packets.unused[counters[UNUSED]]
    packets.size[packet], packets.flow[packet], packets.hop[packet] = size, flow, 0
    packets.path[packet], packets.level[packet] = numbers[flow, PATH], numbers[flow, LEVEL]
    packets.landed[packet], packets.later[packet] = False, NONE
    if numbers[flow, OLDEST] == NONE:
        numbers[flow, OLDEST] = packet
    else:
        packets.later[numbers[flow, NEWEST]] = packet
    numbers[flow, NEWEST] = packet
    values[flow, SENT] += size
    values[flow, IN_FLIGHT] += size
    numbers[flow, AT_NIC] += 1
    if values[flow, SENT] >= values[flow, UNTIL] - ROUNDING * state.rules.payload:
        values[flow, UNTIL] = np.inf
        note_reached(state, flow)
    return int(packet)


@compiled_in_place
def send_what_may_leave(state: State, flow: int, now: float) -> None:
    """Let ``flow`` send until its NIC, its window, its limit or its leader stops it, or something has happened."""
    numbers, counters = state.flows.numbers, state.counters
    while numbers[flow, SENDING] and numbers[flow, AT_NIC] < state.rules.at_nic:
        size = next_size(state, flow)
        if size == 0.0:
            return
        if counters[UNUSED] == 0:
            counters[SHORT] = 1
        if counters[SHORT] or counters[REACHED]:
            try_later(state, flow)
            return
        if has_to_pause(state, flow, size, now):
            return
        packet = new_packet(state, flow, size)
        if forward(state, packet, now):
            arrive(state, packet)


@compiled_in_place
def take_in_order(state: State, flow: int) -> int:
    """Let the receiver of ``flow`` take what has arrived without a gap; return how many packets that is."""
    values, numbers, packets, counters = state.flows.values, state.flows.numbers, state.packets, state.counters
    taken = 0
    while numbers[flow, OLDEST] != NONE and packets.landed[numbers[flow, OLDEST]]:
        packet = numbers[flow, OLDEST]
        numbers[flow, OLDEST] = packets.later[packet]
        packets.unused[counters[UNUSED]] = packet
        counters[UNUSED] += 1
        values[flow, ARRIVED] += packets.size[packet]
        values[flow, TOTAL] += packets.size[packet]
        taken += 1
    return taken


@compiled_in_place
def arrive(state: State, packet: int) -> None:
    """``packet`` has arrived: acknowledge what is complete, and let what waited for its bytes go on.

    A receiver acknowledges every second packet, and at once if one fills a gap: a packet whose level was raised
    overtakes older ones of its flow.
    """
    values, numbers = state.flows.values, state.flows.numbers
    flow = state.packets.flow[packet]
    state.packets.landed[packet] = True
    taken = take_in_order(state, flow)
    if taken == 0:
        return
    numbers[flow, UNACKNOWLEDGED] += taken
    through = values[flow, ARRIVED] >= values[flow, SIZE] - ROUNDING * state.rules.payload
    if through or taken > 1 or numbers[flow, UNACKNOWLEDGED] >= state.rules.acknowledged_together:
        numbers[flow, UNACKNOWLEDGED] = 0
        values[flow, IN_FLIGHT] = values[flow, SENT] - values[flow, ARRIVED]
        try_later(state, flow)
    if through and not numbers[flow, THROUGH]:
        numbers[flow, THROUGH] = 1
        numbers[flow, SENDING] = 0
        note_reached(state, flow)
    follower = numbers[flow, FOLLOWER]
    if follower >= 0 and numbers[follower, AFTER] == flow:
        try_later(state, follower)
