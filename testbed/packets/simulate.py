"""From event to event: a link whose bucket owes nothing any more, or a flow whose limit lets it send; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.packets.agenda import take_first
from testbed.packets.flows import arrive, send_what_may_leave, try_later
from testbed.packets.links import forward, take_first_packet
from testbed.packets.state import ALARM, FIRST_TO_TRY, PLANNED, REACHED, SHORT, TO_TRY, TO_TRY_COUNT, State


@compiled_in_place
def send_all(state: State, now: float) -> None:
    """Let every flow send that may be able to, until something happens that may change what they do."""
    counters = state.counters
    while counters[TO_TRY_COUNT] > 0 and not counters[SHORT] and not counters[REACHED]:
        flow = state.to_try[counters[FIRST_TO_TRY]]
        counters[FIRST_TO_TRY] = (counters[FIRST_TO_TRY] + 1) % len(state.to_try)
        counters[TO_TRY_COUNT] -= 1
        state.flows.numbers[flow, TO_TRY] = 0
        send_what_may_leave(state, flow, now)


@compiled_in_place
def happen(state: State, what: int, now: float) -> None:
    """Let a link pass a packet on, or an alarm wake its flow."""
    links = len(state.links.rate)
    if what >= links:
        state.flows.numbers[what - links, ALARM] = 0
        try_later(state, what - links)
        return
    packet = take_first_packet(state, what, now)
    first_hop, flow = state.packets.hop[packet] == 1, state.packets.flow[packet]
    if forward(state, packet, now):
        arrive(state, packet)
    if first_hop:
        try_later(state, flow)


@compiled_in_place
def simulate(state: State, now: float, until: float) -> float:
    """Let packets move from ``now`` to ``until``, or until a flow is in ``reached`` or none is unused; return when."""
    counters = state.counters
    send_all(state, now)
    while counters[REACHED] == 0 and not counters[SHORT]:
        if counters[PLANNED] == 0 or state.agenda.time[0] > until:
            return until
        now = max(now, state.agenda.time[0])
        happen(state, take_first(state), now)
        send_all(state, now)
    return now
