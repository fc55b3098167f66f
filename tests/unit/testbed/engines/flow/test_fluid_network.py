"""Fluids that forward what others bring: both at different levels of one link."""

from __future__ import annotations

import pytest

from testbed.engines.flow.networks.fluid_network import FluidNetwork

SIZE, LEAD = 1000.0, 100.0


def test_messages_that_overtake_those_they_forward_take_turns_with_them_and_leave_no_cable_idle() -> None:
    # What happens on a cable makes the rates on all be looked at again.
    speeds = {"one": 100.0, "two": 70.0, "three": 55.0, "four": 83.0}
    network = FluidNetwork({name: 8 * speed for name, speed in speeds.items()})
    ends = {}
    for cable in speeds:
        first, second = network.add([cable], 1), network.add([cable], 0)
        network.begin(first, SIZE, SIZE, None, 0.0)
        network.begin(second, SIZE, LEAD, first, 0.0)
        ends[cable] = (first, second)
    for first, second in ends.values():
        network.send(first, True)
        network.send(second, True)
    now, events, ended = 0.0, 0, {}
    while len(ended) < len(ends):
        step = network.next_event()
        network.advance(step)
        now, events = now + step, events + 1
        assert events < 500
        for cable, (first, second) in ends.items():
            assert network.sent(second) <= network.sent(first) + LEAD + 1e-3  # nothing is forwarded before it came
            if network.ended(second):
                ended.setdefault(cable, now)
    for cable, speed in speeds.items():
        assert ended[cable] == pytest.approx(2 * SIZE / speed, rel=1e-6)  # the cable was never idle
