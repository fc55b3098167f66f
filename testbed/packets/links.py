"""Queues of strict priority behind a token bucket, as the shapers of the emulated links are; compiled.

A packet leaves at once if the bucket holds a token or none is owed, and then owes what it is long. So a link that was
idle passes on a bucket of packets immediately, and a busy one its rate (``topologies.shaping``, ``BURST_S``).
"""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.packets.agenda import plan
from testbed.packets.state import AT_NIC, NONE, State

_ROUNDING = 1e-9
"""Share of a packet by which a bucket may be short."""


@compiled_in_place
def cost(state: State, packet: int) -> float:
    """Bytes of a link's payload rate that ``packet`` takes: a short one has the same headers."""
    rules = state.rules
    return float((state.packets.size[packet] + rules.header) * rules.payload_share)


@compiled_in_place
def fill_bucket(state: State, link: int, now: float) -> float:
    """Return the tokens of ``link`` at ``now``."""
    links, rate = state.links, state.links.rate[link]
    tokens = min(state.rules.bucket_s * rate, links.tokens[link] + (now - links.since[link]) * rate)
    links.tokens[link], links.since[link] = tokens, now
    return float(tokens)


@compiled_in_place
def spend(state: State, link: int, packet: int) -> None:
    """Let ``packet`` leave ``link``."""
    state.links.tokens[link] -= cost(state, packet)
    state.links.sent[link, state.packets.level[packet]] += state.packets.size[packet]
    if state.packets.hop[packet] == 0:
        state.flows.numbers[state.packets.flow[packet], AT_NIC] -= 1
    state.packets.hop[packet] += 1


@compiled_in_place
def enqueue(state: State, link: int, packet: int) -> None:
    """Put ``packet`` at the end of its level's queue."""
    links, packets, level = state.links, state.packets, state.packets.level[packet]
    packets.behind[packet] = NONE
    if links.first[link, level] == NONE:
        links.first[link, level] = packet
    else:
        packets.behind[links.last[link, level]] = packet
    links.last[link, level] = packet


@compiled_in_place
def forward(state: State, packet: int, now: float) -> bool:
    """Move ``packet`` on until it has to wait; return whether it has arrived instead."""
    packets, links = state.packets, state.links
    while True:
        link = state.paths[packets.path[packet], packets.hop[packet]]
        if link == NONE:
            return True
        if not links.waiting[link]:
            tokens = fill_bucket(state, link, now)
            if tokens >= -_ROUNDING * state.rules.payload:
                spend(state, link, packet)
                continue
            links.waiting[link] = True
            plan(state, now - tokens / links.rate[link], link)
        enqueue(state, link, packet)
        return False


@compiled_in_place
def highest_waiting(state: State, link: int) -> int:
    """Return the highest level of which a packet waits at ``link``, -1 if there is none."""
    first = state.links.first
    for level in range(first.shape[1]):
        if first[link, level] != NONE:
            return level
    return -1


@compiled_in_place
def take_first_packet(state: State, link: int, now: float) -> int:
    """Let the first packet of the highest level leave ``link``, whose bucket owes nothing; return it."""
    links = state.links
    level = highest_waiting(state, link)
    packet = links.first[link, level]
    links.first[link, level] = state.packets.behind[packet]
    links.tokens[link], links.since[link] = 0.0, now
    spend(state, link, packet)
    links.waiting[link] = highest_waiting(state, link) >= 0
    if links.waiting[link]:
        plan(state, now - links.tokens[link] / links.rate[link], link)
    return int(packet)
