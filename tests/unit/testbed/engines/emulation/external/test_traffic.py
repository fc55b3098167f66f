from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.engines.emulation.external.traffic import TrafficIterations

POLL_S = 0.02


def carried(time_s: float, quiet_s: float, burst_s: float, size: int) -> int:
    """Bytes after ``time_s`` of a program that is quiet, then sends evenly, again and again."""
    whole, rest = divmod(time_s, quiet_s + burst_s)
    return round(size * (whole + min(1.0, max(0.0, rest - quiet_s) / burst_s)))


@settings(deadline=None, max_examples=25)
@given(st.floats(0.15, 0.6), st.floats(0.15, 0.6), st.integers(1_000_000, 100_000_000))
def test_iterations_are_found_from_the_bursts_alone(quiet_s: float, burst_s: float, size: int) -> None:
    found = TrafficIterations(0.0)
    seen = []
    for step in range(1, int(20.0 / POLL_S)):
        seen += found.take(step * POLL_S, carried(step * POLL_S, quiet_s, burst_s, size))
    period = quiet_s + burst_s
    assert found.bytes_per_iteration == pytest.approx(size, rel=0.1)
    assert len(seen) >= int(20.0 / period) - 2
    for number, iteration in enumerate(seen):
        assert iteration.end == pytest.approx((number + 1) * period, abs=2 * POLL_S)
        assert iteration.ready == pytest.approx(number * period + quiet_s, abs=2 * POLL_S)


def test_a_program_that_never_pauses_has_iterations_of_equal_bytes() -> None:
    def total(time_s: float) -> int:
        whole, rest = divmod(time_s, 0.5)
        return round(1e6 * (whole + 0.3 * min(rest, 0.3) / 0.3 + 0.7 * max(0.0, rest - 0.3) / 0.2))

    found = TrafficIterations(0.0)
    seen = [each for step in range(1, 1000) for each in found.take(step * POLL_S, total(step * POLL_S))]
    assert len(seen) == pytest.approx(20.0 / 0.5, abs=2)


def test_traffic_that_never_repeats_has_no_iterations() -> None:
    found = TrafficIterations(0.0)
    assert [each for step in range(1, 500) for each in found.take(step * POLL_S, 0)] == []
    assert found.bytes_per_iteration is None
