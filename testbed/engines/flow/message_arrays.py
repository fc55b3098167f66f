"""What happens to messages, by operations on arrays: the loops of :mod:`.fluid_network` without a compiler.

The operations on each number are the same, and so are the numbers, to the last digit.
"""

from __future__ import annotations

import numpy as np

from testbed.engines.flow.columns import (
    BASE,
    HEAVIER,
    LEAD,
    NOBODY,
    RATE,
    ROUNDING,
    SENT,
    SIZE,
    SLICE,
    TOTAL,
    UNTIL,
    WAITS,
)
from testbed.fluid.maxmin import Flags, Floats, Integers


def _forwardable(rows: Floats, leaders: Floats) -> Floats:
    """Bytes that messages may send at once: all that is left, or what their leaders have brought."""
    brought = leaders[:, TOTAL] - rows[:, BASE]
    return np.minimum(rows[:, SIZE] - rows[:, SENT], rows[:, LEAD] + brought - rows[:, SENT])


def caught_up(active: Integers, after: Integers, values: Floats) -> Integers:
    """As :func:`testbed.engines.flow.networks.fluid_network.caught_up`."""
    found = np.full(len(active), NOBODY)
    forwarding = np.flatnonzero(after[active] >= 0)
    flows = active[forwarding]
    rows = values[flows]
    size, free = rows[:, SIZE], _forwardable(rows, values[after[flows]])
    own_master = (free >= size - rows[:, SENT]) | (free >= SLICE * rows[:, LEAD] - ROUNDING * size)
    waits = np.where(own_master, 0.0, np.where(free <= ROUNDING * size, 1.0, rows[:, WAITS]))
    values[flows, WAITS] = waits
    following = forwarding[waits != 0.0]
    found[following] = after[active[following]]
    return found


def next_change(active: Integers, after: Integers, values: Floats) -> float:
    """As :func:`testbed.engines.flow.networks.fluid_network.next_change`."""
    flows = active[values[active, RATE] > 0.0]
    if not flows.size:
        return np.inf
    rows = values[flows]
    rate, sent = rows[:, RATE], rows[:, SENT]
    soonest = min(
        ((rows[:, SIZE] - sent) / rate).min(),
        ((rows[:, UNTIL] - sent) / rate).min(),
        ((rows[:, HEAVIER] - rows[:, TOTAL]) / rate).min(),
    )
    follow = after[flows] >= 0
    rows, leaders = rows[follow], values[after[flows[follow]]]
    free, left = _forwardable(rows, leaders), rows[:, SIZE] - rows[:, SENT]
    closing = rows[:, RATE] - leaders[:, RATE]
    falls_behind = (rows[:, WAITS] != 0.0) & (closing < 0.0)
    catches_up = ~falls_behind & (free < left) & (free > ROUNDING * rows[:, SIZE]) & (closing > 0.0)
    behind = np.maximum(0.0, SLICE * rows[falls_behind, LEAD] - free[falls_behind]) / -closing[falls_behind]
    caught = free[catches_up] / closing[catches_up]
    return float(max(min(soonest, behind.min(initial=np.inf), caught.min(initial=np.inf)), 0.0))


def advance(active: Integers, sending: Flags, values: Floats, seconds: float) -> Integers:
    """As :func:`testbed.engines.flow.networks.fluid_network.advance`."""
    rows = values[active]
    moved = rows[:, RATE] * seconds
    rows[:, SENT] += moved
    rows[:, TOTAL] += moved
    size, left = rows[:, SIZE], rows[:, SIZE] - rows[:, SENT]
    ends = left <= ROUNDING * size
    counted = ~ends & (rows[:, SENT] >= rows[:, UNTIL] - ROUNDING * size)
    rows[ends, TOTAL] += left[ends]
    rows[ends, SENT] = size[ends]
    rows[counted, UNTIL] = np.inf
    values[active] = rows
    sending[active[ends]] = False
    return active[ends | counted]
