"""Which flow of a NIC sends its next packet, and when; compiled.

A NIC asks its flows in turn, those of the highest level first. A flow is asked while it has bytes, its congestion
control lets it, and its level is not paused.
"""

from __future__ import annotations

import numpy as np

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.agenda import plan
from testbed.rdma.balancing import choose_path
from testbed.rdma.pauses import paused_s
from testbed.rdma.state import NONE, WAKE, State, whole
from testbed.rdma.transports.dispatch import before_sending, rate_of, window_of

_NOTHING = 1e-12
"""Share of a message that is nothing."""
ROUNDING = 1e-6
"""Share of a full packet below which bytes are rounding."""


@compiled_in_place
def note_reached(state: State, flow: int) -> None:
    """Something has happened to ``flow`` that the caller of the simulation wants to know."""
    state.reached[state.counters.reached[0]] = flow
    state.counters.reached[0] += 1


@compiled_in_place
def available(state: State, flow: int) -> float:
    """Bytes that the message may send now: all that is left, or what has come in for it to forward, in whole slices."""
    record = state.flows[flow]
    left = record.message - record.sent
    leader = record.after
    if leader < 0:
        return float(left)
    rounding = ROUNDING * state.rules.payload
    came = state.flows[leader].total - record.leader_total
    if state.flows[leader].through and came >= state.flows[leader].message - rounding:
        return float(left)
    whole = np.floor((came + rounding) / record.slice) * record.slice
    return float(min(left, record.lead + whole - record.sent))


@compiled_in_place
def next_size(state: State, flow: int) -> float:
    """The payload of the next packet of ``flow``, 0 if it has nothing to send or too much in flight."""
    record, payload = state.flows[flow], state.rules.payload
    rounding, left = ROUNDING * payload, record.message - record.sent
    size = min(payload, available(state, flow), record.until - record.sent)
    if left - size <= rounding:
        size = left
    elif size <= rounding:
        return 0.0
    if left <= _NOTHING * record.message or record.in_flight >= window_of(state, flow):
        return 0.0
    return float(size)


@compiled_in_place
def first_link(state: State, flow: int) -> int:
    """The link by which ``flow`` leaves its host, the same on all its paths."""
    return int(state.paths[state.flows[flow].path, 0])


@compiled_in_place
def offer(state: State, flow: int, now: float) -> bool:
    """Put ``flow`` into the list of those that may send, if it may; return whether its NIC has new work.

    A flow that has to wait because of its rate is asked again then.
    """
    record = state.flows[flow]
    if record.ready or not record.sending or next_size(state, flow) == 0.0:
        return False
    if record.next_s > now:
        if not record.alarm:
            record.alarm = True
            plan(state, record.next_s, WAKE, flow)
        return False
    link, level = first_link(state, flow), whole(record.level)
    queue = state.queues[link, level]
    record.ready, record.next_ready = True, NONE
    record.paused_s = paused_s(state, link, level, now)
    if queue.first_ready == NONE:
        queue.first_ready = flow
        state.links[link].waiting |= 1 << level
    else:
        state.flows[queue.last_ready].next_ready = flow
    queue.last_ready = flow
    return True


@compiled_in_place
def next_packet(state: State, link: int, level: int, now: float) -> int:
    """The packet of the flow whose turn it is at ``link``; NONE if none has one, or there are no packets left."""
    queue = state.queues[link, level]
    while queue.first_ready != NONE:
        if state.counters.unused[0] == 0:
            state.counters.short[0] = 1
            return NONE
        flow = whole(queue.first_ready)
        record = state.flows[flow]
        queue.first_ready = record.next_ready
        record.ready = False
        size = next_size(state, flow) if record.sending and record.next_s <= now else 0.0
        if size > 0.0:
            packet = new_packet(state, flow, size, now)
            offer(state, flow, now)
            return int(packet)
        offer(state, flow, now)
    return NONE


@compiled_in_place
def new_packet(state: State, flow: int, size: float, now: float) -> int:
    """Put the next ``size`` bytes of ``flow`` into a packet, and say when the one after may leave."""
    counters, record = state.counters, state.flows[flow]
    before_sending(state, flow, now)
    counters.unused[0] -= 1
    packet = whole(state.unused[counters.unused[0]])
    fields = state.packets[packet]
    fields.payload, fields.flow, fields.hop, fields.level = size, flow, 0, record.level
    fields.path, fields.marked = choose_path(state, flow, now), False
    fields.paused_s, fields.held_s = record.paused_s, 0.0
    fields.offset, fields.generation, fields.number = record.sent, record.generation, record.count
    record.count += 1
    record.sent += size
    record.in_flight += size
    record.packets += 1
    rate = min(record.limit, rate_of(state, flow))
    if rate < np.inf:
        record.next_s = max(now, record.next_s) + size / rate
    if record.sent >= record.until - ROUNDING * state.rules.payload:
        record.until = np.inf
        note_reached(state, flow)
    return int(packet)
