"""Whether switches spread packets as they were told to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.fidelity.spreading import spread_error, uneven
from topologies.network.load_balancing import SPREADING, SpreadCount


def count(*packets: int) -> SpreadCount:
    return SpreadCount("tor0", tuple(f"tor0-eth{number}" for number in range(len(packets))), packets)


@given(st.integers(0, 10**7), st.integers(1, 64), st.sampled_from(SPREADING))
def test_packets_in_turn_are_even_by_any_measure(packets: int, cables: int, kind: str) -> None:
    each, more = divmod(packets, cables)
    counts = [count(*(each + (number < more) for number in range(cables)))]
    assert uneven(counts, kind) == []  # type: ignore[arg-type]


def test_a_cable_that_gets_more_than_its_share_is_named() -> None:
    (line,) = uneven([count(1000, 1000, 1020, 980 + 20)], "spray-in-turn")
    assert line == "switch tor0 sent 1020 packets by tor0-eth2, expected 1005, as many as by each of 4"


def test_chance_explains_what_is_drawn_at_random_and_no_more() -> None:
    assert uneven([count(1000, 1080)], "spray") == []
    assert len(uneven([count(1000, 1400)], "spray")) == 2
    assert len(uneven([count(1000, 1080)], "spray-in-turn")) == 2


def test_flowlets_are_as_long_as_they_are() -> None:
    assert uneven([count(10, 10_000)], "flowlet") == []


def test_the_error_is_the_largest_of_all_cables() -> None:
    assert spread_error([count(100, 100), count(90, 110)]) == pytest.approx(0.1)
    assert spread_error([count(0, 0)]) == spread_error([]) == 0.0
