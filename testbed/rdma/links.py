"""Links: strict priority, the time that a packet takes to be sent, and the delay to the other end; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.agenda import plan
from testbed.rdma.buffers import bytes_on_wire, mark, release
from testbed.rdma.senders import next_packet
from testbed.rdma.state import ARRIVAL, LINK_FREE, NONE, State


@compiled_in_place
def enqueue(state: State, link: int, packet: int, now: float) -> None:
    """Put ``packet`` at the end of its level's queue at ``link``, which sends it at once if it can."""
    queues, level = state.queues, state.packets[packet].level
    state.packets[packet].behind = NONE
    if queues.first[link, level] == NONE:
        queues.first[link, level] = packet
    else:
        state.packets[queues.last[link, level]].behind = packet
    queues.last[link, level] = packet
    queues.queued[link, level] += bytes_on_wire(state, packet)
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
    queues = state.queues
    levels = queues.first.shape[1]
    packet = NONE
    level = 0
    while level < levels:
        if queues.paused[link, level] == 0:
            packet = queues.first[link, level]
            if packet != NONE:
                queues.first[link, level] = state.packets[packet].behind
                queues.queued[link, level] -= bytes_on_wire(state, packet)
                break
            packet = next_packet(state, link, level, now)
            if packet != NONE:
                break
        level += 1
    if packet != NONE:
        send(state, link, packet, now)
        if something_waits(state, link, level):
            state.links[link].planned = True
            plan(state, state.links[link].free_s, LINK_FREE, link)


@compiled_in_place
def something_waits(state: State, link: int, level: int) -> bool:
    """Whether there is more to send over ``link``, looked for from ``level``, where it is most likely."""
    queues = state.queues
    levels = queues.first.shape[1]
    for step in range(levels):
        place = level + step if level + step < levels else level + step - levels
        waits = queues.first[link, place] != NONE or queues.first_ready[link, place] != NONE
        if waits and queues.paused[link, place] == 0:
            return True
    return False


@compiled_in_place
def send(state: State, link: int, packet: int, now: float) -> None:
    """Put ``packet`` on the wire of ``link``."""
    record, level = state.links[link], state.packets[packet].level
    size = bytes_on_wire(state, packet)
    hop = state.packets[packet].hop
    if record.source != NONE:
        mark(state, link, packet)
        release(state, state.paths[state.packets[packet].path, hop - 1], packet, now)
    if len(state.stamps.at_s) > 1:
        state.stamps.queued[packet, hop] = state.queues.queued[link, level]
        state.stamps.sent[packet, hop] = record.sent
        state.stamps.at_s[packet, hop] = now
    state.counters.hops[0] += 1
    record.sent += size
    state.queues.sent[link, level] += state.packets[packet].payload
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
    return int(packet)
