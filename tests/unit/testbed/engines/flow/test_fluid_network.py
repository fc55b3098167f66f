"""Fluids that forward what others bring: both at different levels of one link."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.engines.flow.columns import LIMIT, RATE, WEIGHT
from testbed.engines.flow.networks.affected_flows import reached_by, reached_by_arrays
from testbed.engines.flow.networks.fluid_network import FluidNetwork, caught_up
from testbed.fluid.maxmin import MAX_MIN, rates

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
            if network.ended(first) and network.ended(second):
                ended.setdefault(cable, now)
    for cable, speed in speeds.items():
        assert ended[cable] == pytest.approx(2 * SIZE / speed, rel=1e-6)  # the cable was never idle


def rates_of_all(network: FluidNetwork) -> np.ndarray:
    """The rates of all flows, computed without regard to what has changed."""
    values, out = network._values, np.zeros(len(network._levels))
    active, followed = np.flatnonzero(network._sending), np.full(len(out), -1)
    followed[active] = caught_up(active, network._after, values)
    limits, weights = values[:, LIMIT].copy(), values[:, WEIGHT].copy()
    rates(
        network._sending, network._levels, network._ways, network._parts, limits, weights, followed,
        network._capacity, out, MAX_MIN,
    )  # fmt: skip
    return out


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_rates_computed_where_something_changed_are_those_of_all(draw: random.Random) -> None:
    cables = [f"c{number}" for number in range(12)]
    network = FluidNetwork({cable: 8 * draw.choice((50.0, 100.0, 130.0)) for cable in cables})
    places: list[int] = []
    for _ in range(60):
        _change_something(draw, network, cables, places)
        step = network.next_event()
        assert network._values[:, RATE] == pytest.approx(rates_of_all(network), rel=1e-7, abs=1e-6)
        if step < 1e9:
            network.advance(draw.choice((step, step / 2)))


def _change_something(draw: random.Random, network: FluidNetwork, cables: list[str], places: list[int]) -> None:
    what = draw.randrange(9)
    if what < 4 or not places:
        place = network.add(draw.sample(cables, draw.choice((1, 1, 2, 3))), draw.randrange(3))
        after = draw.choice(places) if places and draw.random() < 0.4 else None
        network.begin(place, SIZE, LEAD if after is not None else SIZE, after, 0.0)
        network.send(place, True)
        places.append(place)
        return
    place = draw.choice(places)
    if what == 4:
        network.send(place, draw.random() < 0.5 and not network.ended(place))
    elif what == 5:
        network.set_level(place, draw.randrange(3))
    elif what == 6:
        network.set_limit(place, draw.choice((5.0, 20.0, float("inf"))))
    elif what == 7:
        network.lead_over(place, draw.sample(cables, 2), draw.sample(cables, 1))
    else:
        network.degrade(draw.choice(cables), draw.choice((0.1, 0.5, 1.0)), 0.0)


@given(st.randoms(use_true_random=False), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_what_a_change_reaches_is_the_same_without_a_compiler(draw: random.Random, count: int) -> None:
    ways = np.array([[draw.randrange(-1, 30), draw.randrange(-1, 30)] for _ in range(count)])
    sending, changed = (np.array([draw.random() < share for _ in range(count)]) for share in (0.7, 0.1))
    active = np.flatnonzero(sending)
    after = np.array([draw.randrange(count) if draw.random() < 0.2 else -1 for _ in range(count)])
    links = np.array([draw.random() < 0.03 for _ in range(30)])
    found = []
    for reach in (reached_by, reached_by_arrays):
        marked = links.copy()
        found.append((reach(changed, marked, active, ways, after).tolist(), marked.tolist()))
    assert found[0] == found[1]
