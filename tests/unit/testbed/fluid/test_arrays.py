"""Operations on arrays compute what the compiled loops do, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.flow import message_arrays
from testbed.engines.flow.columns import COLUMNS, HEAVIER, LIMIT, SIZE, UNTIL, WAITS
from testbed.engines.flow.networks import fluid_network
from testbed.fluid import maxmin
from testbed.fluid.arrays import maxmin as arrays

pytest.importorskip("numba", reason="the extra 'fast' is not installed: there is nothing to compare")

LINKS = 5
RATES = st.floats(0.01, 100.0)
BYTES = st.one_of(st.just(0.0), st.floats(0.001, 10.0))


@st.composite
def flows(draw: Any) -> dict[str, np.ndarray]:
    """Flows on links: some send, some follow another, some are limited."""
    count = draw(st.integers(1, 9))

    def numbers(each: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(draw(st.lists(each, min_size=count, max_size=count)))

    ways = np.full((count, 3), -1, np.int64)
    for flow in range(count):
        way = draw(st.lists(st.integers(0, LINKS - 1), min_size=1, max_size=3, unique=True))
        ways[flow, : len(way)] = way
    return {
        "sending": numbers(st.booleans()).astype(np.bool_),
        "levels": numbers(st.integers(0, 2)).astype(np.int64),
        "ways": ways,
        "parts": np.stack([numbers(st.floats(0.1, 1.0)) for _ in range(3)], axis=1),
        "limits": numbers(st.one_of(RATES, st.just(np.inf))),
        "weights": numbers(st.sampled_from([0.5, 1.0, 3.0])),
        "after": np.array([draw(st.integers(-1, flow - 1)) for flow in range(count)], np.int64),
        "capacity": np.array(draw(st.lists(RATES, min_size=LINKS, max_size=LINKS))),
    }


@given(flows(), st.booleans())
def test_rates_are_those_of_the_compiled_loops(given_flows: dict[str, np.ndarray], proportional: bool) -> None:
    results = []
    for fill in (maxmin.fill, arrays.fill):
        own = {name: values.copy() for name, values in given_flows.items()}
        out, guesses_s = np.zeros(len(own["sending"])), np.zeros((3, LINKS) if proportional else (0, 0))
        fill(**own, out=out, guesses_s=guesses_s)
        results.append([*(values.tobytes() for values in own.values()), out.tobytes(), guesses_s.tobytes()])
    assert results[0] == results[1]


@given(flows(), st.data())
def test_followers_are_lowered_as_by_the_compiled_loops(
    given_flows: dict[str, np.ndarray], data: st.DataObject
) -> None:
    count = len(given_flows["sending"])
    rates = data.draw(st.lists(RATES, min_size=count, max_size=count))
    results = []
    for follow in (maxmin.follow, arrays.follow):
        limits, out = given_flows["limits"].copy(), np.array(rates)
        lowered = follow(given_flows["sending"], given_flows["after"], limits, out)
        results.append((bool(lowered), limits.tobytes(), out.tobytes()))
    assert results[0] == results[1]


@st.composite
def messages(draw: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Messages under way, some of which forward what another brings."""
    count = draw(st.integers(1, 8))
    values = np.array([draw(st.lists(BYTES, min_size=COLUMNS, max_size=COLUMNS)) for _ in range(count)])
    values[:, SIZE] += 0.1
    for column in (LIMIT, UNTIL, HEAVIER):
        values[draw(st.lists(st.integers(0, count - 1))), column] = np.inf
    values[:, WAITS] = draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=count, max_size=count))
    sending = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
    after = np.array(draw(st.lists(st.integers(-1, count - 1), min_size=count, max_size=count)), np.int64)
    return sending, after, values


@given(messages(), st.floats(0.0, 3.0))
def test_messages_move_as_in_the_compiled_loops(
    under_way: tuple[np.ndarray, np.ndarray, np.ndarray], seconds: float
) -> None:
    results = []
    for how in (fluid_network, message_arrays):
        sending, after, values = (each.copy() for each in under_way)
        active = np.flatnonzero(sending)
        found = how.caught_up(active, after, values)
        then = float(how.next_change(active, after, values))
        reached = how.advance(active, sending, values, seconds)
        results.append((found.tobytes(), then, reached.tobytes(), sending.tobytes(), values.tobytes()))
    assert results[0] == results[1]
