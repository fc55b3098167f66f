"""From the number of a transport to its functions; compiled. A transport is a module and a line in some of these."""

from __future__ import annotations

from types import ModuleType
from typing import Final

import numpy as np

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.state import State
from testbed.rdma.transports import dcqcn, dctcp, hpcc

UNLIMITED, DCQCN, DCTCP, HPCC = range(4)
TRANSPORTS: Final = {
    "unlimited": UNLIMITED,
    "dcqcn": DCQCN,
    "dctcp": DCTCP,
    "hpcc": HPCC,
}
_MODULES: Final[dict[str, ModuleType]] = {
    "dcqcn": dcqcn,
    "dctcp": dctcp,
    "hpcc": hpcc,
}


def defaults_of(transport: str) -> dict[str, float]:
    """The parameters of ``transport`` by name, in the order of its module."""
    return dict(_MODULES[transport].DEFAULTS) if transport in _MODULES else {}


@compiled_in_place
def answers(state: State) -> bool:
    """Whether senders hear of every packet."""
    return bool(state.rules.transport >= DCTCP)


@compiled_in_place
def line_of(state: State, flow: int) -> float:
    """Bytes of payload per second of the link by which ``flow`` leaves its host."""
    rules = state.rules
    rate = state.links[state.paths[state.flows[flow].path, 0]].rate
    return float(rate * rules.payload / (rules.payload + rules.header))


@compiled_in_place
def rate_of(state: State, flow: int) -> float:
    """Bytes per second that congestion control allows; infinite at the rate of the line."""
    if state.rules.transport == DCQCN or state.rules.transport == HPCC:
        rate = state.flows[flow].rate
        return float(rate) if rate < line_of(state, flow) else np.inf
    return np.inf


@compiled_in_place
def window_of(state: State, flow: int) -> float:
    """Bytes that congestion control allows in flight."""
    return float(state.flows[flow].window)


@compiled_in_place
def before_sending(state: State, flow: int, now: float) -> None:
    """A packet is about to leave."""
    if state.rules.transport == DCQCN:
        dcqcn.before_sending(state, flow, line_of(state, flow), now)


@compiled_in_place
def on_notice(state: State, flow: int, now: float) -> None:
    """A congestion notification has come."""
    if state.rules.transport == DCQCN:
        dcqcn.on_notice(state, flow, line_of(state, flow), now)


@compiled_in_place
def on_answer(state: State, flow: int, packet: int) -> None:
    """``packet`` is answered."""
    if state.rules.transport == DCTCP:
        dctcp.on_answer(state, flow, packet)
    elif state.rules.transport == HPCC:
        hpcc.on_answer(state, flow, packet, line_of(state, flow), state.flows[flow].round_trip_s)


@compiled_in_place
def begin(state: State, flow: int, round_trip_s: float, now: float) -> None:
    """A connection begins at the rate of the line, with a window that fills it."""
    record, line = state.flows[flow], line_of(state, flow)
    record.rate = record.target = line
    record.alpha = 1.0
    record.round_trip_s = round_trip_s
    record.alpha_s = record.increase_s = record.notified_s = now
    record.window = record.reference = line * round_trip_s if state.rules.transport >= DCTCP else np.inf
