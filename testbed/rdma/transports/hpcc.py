"""HPCC (Li et al., SIGCOMM 2019, algorithm 1): a window that follows the load of the busiest link."""

from __future__ import annotations

from typing import Final

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.state import NONE, State

TARGET, STAGES, ADDITIVE = range(3)
DEFAULTS: Final = {"utilization": 0.95, "stages": 5.0, "additive": 0.0005}
"""Additive increase as a share of the window that fills the line: 50 Mb/s of 100 Gb/s in the authors' simulator."""


@compiled_in_place
def load_of(state: State, flow: int, packet: int, round_trip_s: float) -> float:
    """The estimate of the load of the busiest link, averaged over a round trip; what was told is kept for the next."""
    record, path = state.flows[flow], state.packets[packet].path
    told, seen = state.stamps, state.seen
    most, weight = 0.0, 0.0
    for hop in range(state.paths.shape[1]):
        link = state.paths[path, hop]
        if link == NONE:
            break
        since = told.at_s[packet, hop] - seen.at_s[flow, hop]
        if since > 0.0:
            rate = state.links[link].rate
            queued = min(told.queued[packet, hop], seen.queued[flow, hop])
            load = queued / (rate * round_trip_s) + (told.sent[packet, hop] - seen.sent[flow, hop]) / since / rate
            if load > most:
                most, weight = load, min(1.0, since / round_trip_s)
        seen.queued[flow, hop] = told.queued[packet, hop]
        seen.sent[flow, hop] = told.sent[packet, hop]
        seen.at_s[flow, hop] = told.at_s[packet, hop]
    record.utilization = (1.0 - weight) * record.utilization + weight * most
    return float(record.utilization)


@compiled_in_place
def on_answer(state: State, flow: int, packet: int, line: float, round_trip_s: float) -> None:
    """``packet`` is answered, with what the links on its way told: the window follows."""
    parameters, record = state.parameters, state.flows[flow]
    record.answered += state.packets[packet].payload
    load = load_of(state, flow, packet, round_trip_s)
    once = record.answered > record.round_end
    full = line * round_trip_s
    if load >= parameters[TARGET] or record.stage >= parameters[STAGES]:
        record.window = record.reference / (load / parameters[TARGET]) + parameters[ADDITIVE] * full
        stage = 0
    else:
        record.window = record.reference + parameters[ADDITIVE] * full
        stage = record.stage + 1
    record.window = min(max(record.window, parameters[ADDITIVE] * full), full)
    if once:
        record.stage, record.reference = stage, record.window
        record.round_end = record.answered + record.in_flight
    record.rate = record.window / round_trip_s
