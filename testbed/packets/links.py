"""Queues of strict priority behind a token bucket, as the shapers of the emulated links are; compiled.

A packet leaves at once if the bucket holds a token or none is owed, and then owes what it is long. So a link that was
idle passes on a bucket of packets immediately, and a busy one its rate (``topologies.shaping``, ``BURST_S``).
"""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.packets.agenda import plan
from testbed.packets.state import NONE, State

_ROUNDING = 1e-9
"""Share of a packet by which a bucket may be short."""


@compiled_in_place
def cost(state: State, packet: int) -> float:
    """Bytes of a link's payload rate that ``packet`` takes: a short one has the same headers."""
    rules = state.rules
    return float((state.packets[packet].payload + rules.header) * rules.payload_share)


@compiled_in_place
def fill_bucket(state: State, link: int, now: float) -> float:
    """Return the tokens of ``link`` at ``now``."""
    record = state.links[link]
    tokens = min(state.rules.bucket_s * record.rate, record.tokens + (now - record.since_s) * record.rate)
    record.tokens, record.since_s = tokens, now
    return float(tokens)


@compiled_in_place
def spend(state: State, link: int, packet: int) -> None:
    """Let ``packet`` leave ``link``."""
    fields = state.packets[packet]
    state.links[link].tokens -= cost(state, packet)
    state.queues[link, fields.level].sent += fields.payload
    if fields.hop == 0:
        state.flows[fields.flow].at_nic -= 1
    fields.hop += 1


@compiled_in_place
def enqueue(state: State, link: int, packet: int) -> None:
    """Put ``packet`` at the end of its level's queue."""
    level = state.packets[packet].level
    queue = state.queues[link, level]
    state.packets[packet].behind = NONE
    if queue.first == NONE:
        queue.first = packet
        state.links[link].waiting |= 1 << level
    else:
        state.packets[queue.last].behind = packet
    queue.last = packet
    queue.queued += state.packets[packet].payload
    queue.longest = max(queue.longest, queue.queued)


@compiled_in_place
def forward(state: State, packet: int, now: float) -> bool:
    """Move ``packet`` on until it has to wait; return whether it has arrived instead."""
    fields = state.packets[packet]
    while True:
        link = state.paths[fields.path, fields.hop]
        if link == NONE:
            return True
        if state.links[link].waiting == 0:
            tokens = fill_bucket(state, link, now)
            if tokens >= -_ROUNDING * state.rules.payload:
                spend(state, link, packet)
                continue
            plan(state, now - tokens / state.links[link].rate, link)
        enqueue(state, link, packet)
        return False


@compiled_in_place
def highest_waiting(state: State, link: int) -> int:
    """Return the highest level of which a packet waits at ``link``, where one does."""
    level = 0
    while state.links[link].waiting & (1 << level) == 0:
        level += 1
    return level


@compiled_in_place
def take_first_packet(state: State, link: int, now: float) -> int:
    """Let the first packet of the highest level leave ``link``, whose bucket owes nothing; return it."""
    record, level = state.links[link], highest_waiting(state, link)
    queue = state.queues[link, level]
    packet = queue.first
    queue.first = state.packets[packet].behind
    queue.queued -= state.packets[packet].payload
    if queue.first == NONE:
        queue.queued = 0.0
        record.waiting &= ~(1 << level)
    record.tokens, record.since_s = 0.0, now
    spend(state, link, packet)
    if record.waiting != 0:
        plan(state, now - record.tokens / record.rate, link)
    return int(packet)
