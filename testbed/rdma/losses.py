"""Packets that a switch drops, and how their bytes are sent again; compiled.

Go-back-N, as RoCE cards have it: the receiver takes nothing after a gap, asks once for what is missing, and the sender
goes back to it. Selective repeat: the receiver keeps what comes, and the sender repeats just what was dropped, of which
it hears a round trip later. If nothing comes after what was dropped, a timeout does it.
"""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.agenda import plan
from testbed.rdma.receivers import forget
from testbed.rdma.senders import ROUNDING
from testbed.rdma.state import ASKED, LOSS, SELECTIVE_REPEAT, TIMEOUT, State, whole


@compiled_in_place
def drop(state: State, link: int, packet: int, now: float) -> None:
    """``packet`` is lost on ``link``, or has found no room where it was to leave by it."""
    flow = whole(state.packets[packet].flow)
    record = state.flows[flow]
    state.counters.dropped[0] += 1
    state.queues[link, state.packets[packet].level].dropped += 1
    if state.rules.recovery == SELECTIVE_REPEAT:
        plan(state, now + record.round_trip_s, LOSS, packet)
        return
    if state.packets[packet].generation == record.generation and not record.lost:
        record.lost, record.lost_s = True, now
        if not record.timer:
            record.timer = True
            plan(state, now + state.rules.timeout_s, TIMEOUT, flow)
    forget(state, flow, packet)


@compiled_in_place
def is_out_of_order(state: State, packet: int, now: float) -> bool:
    """Whether the receiver does not take ``packet``: what was sent before it is missing, or it has come already."""
    fields, flow = state.packets[packet], whole(state.packets[packet].flow)
    record = state.flows[flow]
    of_this_message = fields.generation >= record.first_generation
    if of_this_message and abs(fields.offset - record.arrived) <= ROUNDING * state.rules.payload:
        return False
    if fields.offset > record.arrived and fields.generation == record.generation and not record.asked:
        record.asked = True
        plan(state, now + record.back_s, ASKED, flow)
    forget(state, flow, packet)
    return True


@compiled_in_place
def go_back(state: State, flow: int) -> None:
    """Send again what has not arrived in order."""
    record = state.flows[flow]
    record.sent = record.arrived
    record.in_flight = 0.0  # what is still under way counts no more
    record.lost = False
    record.generation += 1


@compiled_in_place
def asked(state: State, flow: int) -> None:
    """The receiver's request has come."""
    state.flows[flow].asked = False
    go_back(state, flow)


@compiled_in_place
def time_out(state: State, flow: int, now: float) -> None:
    """A timeout has come, perhaps of a loss that is made up for already."""
    record = state.flows[flow]
    record.timer = False
    if not record.lost:
        return
    if record.lost_s + state.rules.timeout_s <= now:
        go_back(state, flow)
    else:
        record.timer = True
        plan(state, record.lost_s + state.rules.timeout_s, TIMEOUT, flow)


@compiled_in_place
def repeat(state: State, packet: int) -> int:
    """The sender hears that ``packet`` was dropped: its bytes are sent again. Return its flow."""
    flow, payload = whole(state.packets[packet].flow), state.packets[packet].payload
    record = state.flows[flow]
    record.in_flight -= payload
    record.sent -= payload
    forget(state, flow, packet)
    return int(flow)
