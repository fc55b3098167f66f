"""Flows that keep a window in flight, wait in their own NIC and forward slices, as connections do; compiled."""

from __future__ import annotations

import numpy as np

from testbed.fluid.compiled import compiled_in_place
from testbed.packets.agenda import plan
from testbed.packets.links import forward
from testbed.packets.state import NONE, State

_NOTHING = 1e-12
"""Share of a message that is nothing."""
ROUNDING = 1e-6
"""Share of a full packet below which bytes are rounding."""


@compiled_in_place
def try_later(state: State, flow: int) -> None:
    """Look soon whether ``flow`` can send."""
    if not state.flows[flow].to_try:
        state.flows[flow].to_try = True
        counters, room = state.counters, len(state.to_try)
        state.to_try[(counters.first_to_try[0] + counters.to_try[0]) % room] = flow
        counters.to_try[0] += 1


@compiled_in_place
def note_reached(state: State, flow: int) -> None:
    """Something has happened to ``flow`` that the caller of the simulation wants to know."""
    state.reached[state.counters.reached[0]] = flow
    state.counters.reached[0] += 1


@compiled_in_place
def available(state: State, flow: int) -> float:
    """Bytes that the message may send now: all that is left, or what has come in for it to forward, in whole slices.

    The end of the message that it forwards counts as the end of a slice.
    """
    record = state.flows[flow]
    left = record.message - record.sent
    if record.after < 0:
        return float(left)
    leader, rounding = state.flows[record.after], ROUNDING * state.rules.payload
    came = leader.total - record.leader_total
    if leader.through and came >= leader.message - rounding:
        return float(left)
    whole = np.floor((came + rounding) / record.slice) * record.slice
    return float(min(left, record.lead + whole - record.sent))


@compiled_in_place
def window(state: State, flow: int) -> float:
    """Bytes that ``flow`` may have in flight, by what has arrived of it (``workloads.iteration.byte_windows``)."""
    record = state.flows[flow]
    if record.windows == 1:
        return float(state.windows[flow, 0])
    done = record.total % record.period
    part = min(int(done * record.windows / record.period), record.windows - 1)
    return float(min(state.windows[flow, part], record.period - done + state.windows[flow, 0]))


@compiled_in_place
def has_to_pause(state: State, flow: int, size: float, now: float) -> bool:
    """Whether the limit of ``flow`` does not let it send yet; if it does, ``size`` bytes count."""
    record = state.flows[flow]
    if record.limit == np.inf:
        return False
    if record.next_s > now:
        if not record.alarm:
            record.alarm = True
            plan(state, record.next_s, len(state.links) + flow)
        return True
    record.next_s = max(record.next_s, now) + size / record.limit
    return False


@compiled_in_place
def next_size(state: State, flow: int) -> float:
    """Return the payload of the next packet of ``flow``, 0 if it has nothing to send or too much in flight.

    A packet does not reach beyond the bytes at which an event comes: those after them may have another level.
    """
    record, payload = state.flows[flow], state.rules.payload
    rounding, left = ROUNDING * payload, record.message - record.sent
    size = min(payload, available(state, flow), record.until - record.sent)
    if left - size <= rounding:
        size = left
    elif size <= rounding:
        return 0.0
    if left <= _NOTHING * record.message or record.in_flight + size > window(state, flow) + rounding:
        return 0.0
    return float(size)


@compiled_in_place
def next_path(state: State, flow: int) -> int:
    """Return which of its paths the next packet of ``flow`` takes: the next one of its switch, or one at random.

    The random numbers are those of the linear congruence of ISO C's example of ``rand``.
    """
    record, turns = state.flows[flow], state.turns
    if record.paths <= 1:
        return 0
    group = record.group
    if state.rules.at_random:
        turns[group] = (turns[group] * 1103515245 + 12345) & 0x7FFFFFFF
        return int((turns[group] >> 16) % record.paths)
    turns[group] += 1
    return int(turns[group] % record.paths)


@compiled_in_place
def new_packet(state: State, flow: int, size: float) -> int:
    """Put the next ``size`` bytes of ``flow`` into a packet."""
    counters, record = state.counters, state.flows[flow]
    counters.unused[0] -= 1
    packet = state.unused[counters.unused[0]]
    fields = state.packets[packet]
    fields.payload, fields.flow, fields.hop = size, flow, 0
    fields.path, fields.level = record.path + next_path(state, flow), record.level
    fields.landed, fields.later = False, NONE
    if record.oldest == NONE:
        record.oldest = packet
    else:
        state.packets[record.newest].later = packet
    record.newest = packet
    record.sent += size
    record.in_flight += size
    record.at_nic += 1
    if record.sent >= record.until - ROUNDING * state.rules.payload:
        record.until = np.inf
        note_reached(state, flow)
    return int(packet)


@compiled_in_place
def send_what_may_leave(state: State, flow: int, now: float) -> None:
    """Let ``flow`` send until its NIC, its window, its limit or its leader stops it, or something has happened."""
    counters, record = state.counters, state.flows[flow]
    while record.sending and record.at_nic < state.rules.at_nic:
        size = next_size(state, flow)
        if size == 0.0:
            return
        if counters.unused[0] == 0:
            counters.short[0] = 1
        if counters.short[0] != 0 or counters.reached[0] != 0:
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
    record, taken = state.flows[flow], 0
    while record.oldest != NONE and state.packets[record.oldest].landed:
        packet = record.oldest
        record.oldest = state.packets[packet].later
        state.unused[state.counters.unused[0]] = packet
        state.counters.unused[0] += 1
        record.arrived += state.packets[packet].payload
        record.total += state.packets[packet].payload
        taken += 1
    return taken


@compiled_in_place
def arrive(state: State, packet: int) -> None:
    """``packet`` has arrived: acknowledge what is complete, and let what waited for its bytes go on.

    A receiver acknowledges every second packet, and at once if one fills a gap: a packet whose level was raised
    overtakes older ones of its flow.
    """
    flow = state.packets[packet].flow
    record = state.flows[flow]
    state.packets[packet].landed = True
    taken = take_in_order(state, flow)
    if taken == 0:
        return
    record.unacknowledged += taken
    through = record.arrived >= record.message - ROUNDING * state.rules.payload
    if through or taken > 1 or record.unacknowledged >= state.rules.acknowledged_together:
        record.unacknowledged = 0
        record.in_flight = record.sent - record.arrived
        try_later(state, flow)
    if through and not record.through:
        record.through = True
        record.sending = False
        note_reached(state, flow)
    if record.follower >= 0 and state.flows[record.follower].after == flow:
        try_later(state, record.follower)
    if record.other_follower >= 0 and state.flows[record.other_follower].after == flow:
        try_later(state, record.other_follower)
