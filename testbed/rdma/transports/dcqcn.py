"""DCQCN (Zhu et al., SIGCOMM 2015, section 3): rates that notices of marked packets lower, and time and bytes raise.

Timers run only when the flow sends or hears of a mark: what they would have done meanwhile is done then.
"""

from __future__ import annotations

from typing import Final

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.state import State

GAIN, ALPHA_S, TIMER_S, BYTES, STAGES, ADDITIVE, HYPER, LEAST, NOTICE_S = range(9)
DEFAULTS: Final = {
    "gain": 1 / 256,
    "alpha_timer": 55e-6,
    "timer": 55e-6,
    "byte_counter": 10e6,
    "stages": 5.0,
    "additive": 0.001,
    "hyper": 0.01,
    "least": 0.001,
    "notice_interval": 50e-6,
}
"""The paper's figure 6 and section 5.2: seconds and bytes; increases and the least rate as shares of the line rate (40
Mb/s of 40 Gb/s), hyper increase ten times the additive one, as the devices have it."""

_SMALL = 1e-4
"""Alpha below this, and a rate so near the line's, are what they would be after any more time."""


@compiled_in_place
def on_notice(state: State, flow: int, line: float, now: float) -> None:
    """A marked packet has arrived: slow down."""
    parameters, record = state.parameters, state.flows[flow]
    let_time_pass(state, flow, line, now)
    record.target = record.rate
    record.rate = max(record.rate * (1.0 - record.alpha / 2), parameters[LEAST] * line)
    record.alpha = (1.0 - parameters[GAIN]) * record.alpha + parameters[GAIN]
    record.alpha_s, record.increase_s = now + parameters[ALPHA_S], now + parameters[TIMER_S]
    record.counted, record.by_time, record.by_bytes = 0.0, 0, 0


@compiled_in_place
def before_sending(state: State, flow: int, line: float, now: float) -> None:
    """Count a packet that leaves."""
    record = state.flows[flow]
    let_time_pass(state, flow, line, now)
    record.counted += state.rules.payload
    if record.counted >= state.parameters[BYTES]:
        record.counted = 0.0
        record.by_bytes += 1
        increase(state, flow, line)


@compiled_in_place
def let_time_pass(state: State, flow: int, line: float, now: float) -> None:
    """Do what both timers have done up to ``now``."""
    parameters, record = state.parameters, state.flows[flow]
    while record.alpha_s <= now:
        record.alpha *= 1.0 - parameters[GAIN]
        record.alpha_s += parameters[ALPHA_S]
        if record.alpha < _SMALL:
            record.alpha_s = now + parameters[ALPHA_S]
    while record.increase_s <= now:
        record.by_time += 1
        increase(state, flow, line)
        record.increase_s += parameters[TIMER_S]
        if record.rate > (1.0 - _SMALL) * line:
            record.rate = record.target = line
            record.increase_s = now + parameters[TIMER_S]


@compiled_in_place
def increase(state: State, flow: int, line: float) -> None:
    """Fast recovery, additive increase and hyper increase, by how often time and bytes have come since the notice."""
    parameters, record = state.parameters, state.flows[flow]
    stages = int(parameters[STAGES])
    if max(record.by_time, record.by_bytes) >= stages:
        if min(record.by_time, record.by_bytes) >= stages:
            record.target += parameters[HYPER] * line * (min(record.by_time, record.by_bytes) - stages + 1)
        else:
            record.target += parameters[ADDITIVE] * line
    record.target = min(record.target, line)
    record.rate = (record.target + record.rate) / 2
