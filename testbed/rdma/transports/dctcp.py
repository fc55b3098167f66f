"""DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257): a window that shrinks by the share of marked bytes."""

from __future__ import annotations

from typing import Final

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.state import State

GAIN = 0
DEFAULTS: Final = {"gain": 1 / 16}


@compiled_in_place
def on_answer(state: State, flow: int, packet: int) -> None:
    """``packet`` is answered: at the end of a round trip the window changes."""
    record, payload = state.flows[flow], state.packets[packet].payload
    gain, full = state.parameters[GAIN], state.rules.payload
    record.answered += payload
    record.counted += payload
    if state.packets[packet].marked:
        record.marked += payload
    if record.answered < record.round_end:
        return
    record.alpha = (1.0 - gain) * record.alpha + gain * record.marked / record.counted
    if record.marked > 0.0:
        record.window = max(full, record.window * (1.0 - record.alpha / 2))
    elif record.counted >= record.window / 2:  # a flow that does not fill its window learns nothing about a larger one
        record.window += full
    record.counted = record.marked = 0.0
    record.round_end = record.answered + record.in_flight
