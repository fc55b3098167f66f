"""Links: strict priority, the time that a packet takes to be sent, and the delay to the other end; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.agenda import plan
from testbed.rdma.buffers import bytes_on_wire, mark, release
from testbed.rdma.pauses import is_long, note_held, paused_s
from testbed.rdma.senders import next_packet
from testbed.rdma.state import ARRIVAL, LINK_FREE, NONE, State, whole


@compiled_in_place
def enqueue(state: State, link: int, packet: int, now: float) -> None:
    """Put ``packet`` at the end of its level's queue at ``link``, which sends it at once if it can."""
    level = whole(state.packets[packet].level)
    queue = state.queues[link, level]
    state.packets[packet].behind = NONE
    if queue.first == NONE:
        queue.first = packet
        state.links[link].waiting |= 1 << level
    else:
        state.packets[queue.last].behind = packet
    queue.last = packet
    queue.queued += bytes_on_wire(state, packet)
    if queue.queued > queue.lately:
        queue.lately = queue.queued
        queue.longest = max(queue.longest, queue.queued)
    state.packets[packet].paused_s = paused_s(state, link, level, now)
    work(state, link, now)


@compiled_in_place
def work(state: State, link: int, now: float) -> None:
    """Something waits at ``link``: send now, or as soon as the packet that is being sent has left."""
    if state.links[link].planned:
        return
    if state.links[link].free_s > now:
        state.links[link].planned = True
        plan(state, state.links[link].free_s, LINK_FREE, link)
    else:
        serve(state, link, now)


@compiled_in_place
def serve(state: State, link: int, now: float) -> None:
    """Send the next packet over ``link``, which is free: of the highest level that waits and is not paused."""
    record = state.links[link]
    packet = NONE
    may_leave = record.waiting & ~record.paused
    while packet == NONE and may_leave != 0:
        level = 0
        while may_leave & (1 << level) == 0:
            level += 1
        packet = take(state, link, level, now)
        may_leave = record.waiting & ~record.paused
        if state.counters.short[0] != 0:
            break
    if packet != NONE:
        send(state, link, packet, now)
        if record.waiting & ~record.paused != 0:
            record.planned = True
            plan(state, record.free_s, LINK_FREE, link)


@compiled_in_place
def take(state: State, link: int, level: int, now: float) -> int:
    """The next packet of ``level`` at ``link``; NONE if it turns out that no flow there may send."""
    queue = state.queues[link, level]
    packet = queue.first
    if packet != NONE:
        queue.first = state.packets[packet].behind
        if is_long(state, link, level):
            queue.long_s = now
        queue.queued -= bytes_on_wire(state, packet)
    else:
        packet = next_packet(state, link, level, now)
    if queue.first == NONE and queue.first_ready == NONE:
        state.links[link].waiting &= ~(1 << level)
    return whole(packet)


@compiled_in_place
def send(state: State, link: int, packet: int, now: float) -> None:
    """Put ``packet`` on the wire of ``link``."""
    record, level = state.links[link], whole(state.packets[packet].level)
    size = bytes_on_wire(state, packet)
    hop = state.packets[packet].hop
    if state.queues[link, level].paused_s > state.packets[packet].paused_s:
        note_held(state, link, packet)
    if record.source != NONE:
        mark(state, link, packet)
        release(state, state.paths[state.packets[packet].path, hop - 1], link, packet, now)
    if len(state.stamps.at_s) > 1:
        state.stamps.queued[packet, hop] = state.queues[link, level].queued
        state.stamps.sent[packet, hop] = record.sent
        state.stamps.at_s[packet, hop] = now
    state.counters.hops[0] += 1
    record.sent += size
    state.queues[link, level].sent += state.packets[packet].payload
    free_s = now + size / record.rate
    record.free_s = free_s
    state.packets[packet].at_s = free_s + record.delay
    state.packets[packet].behind = NONE
    if record.first_wire == NONE:
        record.first_wire = packet
        plan(state, free_s + record.delay, ARRIVAL, link)
    else:
        state.packets[record.last_wire].behind = packet
    record.last_wire = packet


@compiled_in_place
def take_from_wire(state: State, link: int) -> int:
    """The packet that has come to the end of ``link``."""
    record = state.links[link]
    packet = record.first_wire
    behind = state.packets[packet].behind
    record.first_wire = behind
    if behind != NONE:
        plan(state, state.packets[behind].at_s, ARRIVAL, link)
    return whole(packet)
