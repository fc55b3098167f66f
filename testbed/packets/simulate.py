"""From event to event: a link whose bucket owes nothing any more, or a flow whose limit lets it send; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.packets.agenda import take_first
from testbed.packets.flows import arrive, send_what_may_leave, try_later
from testbed.packets.links import forward, take_first_packet
from testbed.packets.state import State


@compiled_in_place
def send_all(state: State, now: float) -> None:
    """Let every flow send that may be able to, until something happens that may change what they do."""
    counters = state.counters
    while counters.to_try[0] > 0 and counters.short[0] == 0 and counters.reached[0] == 0:
        flow = state.to_try[counters.first_to_try[0]]
        counters.first_to_try[0] = (counters.first_to_try[0] + 1) % len(state.to_try)
        counters.to_try[0] -= 1
        state.flows[flow].to_try = False
        send_what_may_leave(state, flow, now)


@compiled_in_place
def happen(state: State, what: int, now: float) -> None:
    """Let a link pass a packet on, or an alarm wake its flow."""
    links = len(state.links)
    if what >= links:
        state.flows[what - links].alarm = False
        try_later(state, what - links)
        return
    packet = take_first_packet(state, what, now)
    first_hop, flow = state.packets[packet].hop == 1, state.packets[packet].flow
    if forward(state, packet, now):
        arrive(state, packet)
    if first_hop:
        try_later(state, flow)


@compiled_in_place
def simulate(state: State, now: float, until: float) -> float:
    """Let packets move from ``now`` to ``until``, or until a flow is in ``reached`` or none is unused; return when."""
    counters, events = state.counters, state.agenda
    send_all(state, now)
    while counters.reached[0] == 0 and counters.short[0] == 0:
        if counters.planned[0] == 0 or events[0].at_s > until:
            return until
        now = max(now, events[0].at_s)
        happen(state, take_first(state), now)
        send_all(state, now)
    return now
