"""DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257): a window that shrinks by the share of marked bytes."""

from __future__ import annotations

from typing import Final

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.state import State

GAIN = 0
DEFAULTS: Final = {"gain": 1 / 16}


@compiled_in_place
def on_answer(state: State, flow: int, packet: int) -> None:
    """``packet`` is answered: the window shrinks at the first mark, but only once per window of data (section 3.3).

    Else it grows by a packet per round trip, unless the flow does not fill it and learns nothing about a larger one.
    """
    record, payload = state.flows[flow], state.packets[packet].payload
    full = state.rules.payload
    record.answered += payload
    record.counted += payload
    if state.packets[packet].marked:
        record.marked += payload
    if record.answered > record.cut_end:
        if state.packets[packet].marked:
            record.window = max(full, record.window * (1.0 - record.alpha / 2))
            record.cut_end = record.answered + record.in_flight
        elif record.in_flight + payload >= record.window / 2:
            record.window += full * payload / record.window
    if record.answered >= record.round_end:
        end_round(state, flow)


@compiled_in_place
def end_round(state: State, flow: int) -> None:
    """A round trip is over: its share of marked bytes counts."""
    record, gain = state.flows[flow], state.parameters[GAIN]
    record.alpha = (1.0 - gain) * record.alpha + gain * record.marked / record.counted
    record.counted = record.marked = 0.0
    record.round_end = record.answered + record.in_flight
