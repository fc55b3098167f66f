"""What a receiver does with a packet, and what comes back to the sender; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.agenda import plan
from testbed.rdma.senders import ROUNDING, note_reached
from testbed.rdma.state import ANSWER, NONE, NOTICE, State, whole
from testbed.rdma.transports.dcqcn import NOTICE_S
from testbed.rdma.transports.dispatch import DCQCN, answers, on_answer


@compiled_in_place
def receive(state: State, packet: int, now: float) -> None:
    """``packet`` has arrived. Bytes count in any order."""
    payload, flow = state.packets[packet].payload, whole(state.packets[packet].flow)
    record = state.flows[flow]
    count(state, packet)
    record.arrived += payload
    record.total += payload
    if answers(state):
        answer(state, flow, packet, now)
    else:
        no_longer_in_flight(state, flow, packet)
        forget(state, flow, packet)
    if record.arrived >= record.message - ROUNDING * state.rules.payload and not record.through:
        record.through = True
        record.sending = False
        note_reached(state, flow)


@compiled_in_place
def count(state: State, packet: int) -> None:
    """Count what has happened to ``packet``; one that comes behind one that was sent later is reordered (RFC 4737)."""
    fields = state.packets[packet]
    record = state.flows[fields.flow]
    record.delivered += 1
    record.with_mark += fields.marked
    if fields.number < record.furthest:
        record.reordered += 1
    else:
        record.furthest = fields.number


@compiled_in_place
def notify(state: State, packet: int, now: float) -> None:
    """Send a notice of congestion back if ``packet`` has a mark, and the last notice was long enough ago.

    Whether the packet is in order makes no difference, or a sender would hear nothing of congestion that drops packets.
    """
    if state.rules.transport != DCQCN or not state.packets[packet].marked:
        return
    flow = whole(state.packets[packet].flow)
    record = state.flows[flow]
    if now - record.notified_s >= state.parameters[NOTICE_S] and not record.notice:
        record.notified_s, record.notice = now, True
        state.counters.notices[0] += 1
        plan(state, now + record.back_s, NOTICE, flow)


@compiled_in_place
def answer(state: State, flow: int, packet: int, now: float) -> None:
    """Send an answer to ``packet`` back; answers keep their order."""
    record = state.flows[flow]
    at_s = now + record.back_s
    state.packets[packet].at_s, state.packets[packet].behind = at_s, NONE
    if record.first_answer == NONE:
        record.first_answer = packet
        plan(state, at_s, ANSWER, flow)
    else:
        state.packets[record.last_answer].behind = packet
    record.last_answer = packet


@compiled_in_place
def take_answer(state: State, flow: int) -> None:
    """The sender of ``flow`` hears of its first packet that is not answered."""
    record = state.flows[flow]
    packet = whole(record.first_answer)
    record.first_answer = state.packets[packet].behind
    if record.first_answer != NONE:
        plan(state, state.packets[record.first_answer].at_s, ANSWER, flow)
    no_longer_in_flight(state, flow, packet)
    on_answer(state, flow, packet)
    forget(state, flow, packet)


@compiled_in_place
def no_longer_in_flight(state: State, flow: int, packet: int) -> None:
    """``packet`` has arrived, or that is known, unless the flow has gone back since it was sent."""
    if state.packets[packet].generation == state.flows[flow].generation:
        state.flows[flow].in_flight -= state.packets[packet].payload


@compiled_in_place
def forget(state: State, flow: int, packet: int) -> None:
    """``packet`` can be used again."""
    state.flows[flow].packets -= 1
    state.unused[state.counters.unused[0]] = packet
    state.counters.unused[0] += 1
