"""Windows by bytes: each for an equal part of an iteration, and again in the next one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workloads.iteration.byte_windows import ByteWindows


def test_each_window_holds_for_its_part_of_the_period_and_again_in_the_next() -> None:
    windows = ByteWindows(10, (1, 2))
    assert [windows.at(received) for received in (0, 4, 5, 9, 10, 14, 15)] == [1, 1, 2, 2, 1, 1, 2]


@given(st.integers(1, 500), st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_what_was_allowed_is_never_taken_back_and_a_period_begins_with_its_first_window(
    period: int, windows: list[int]
) -> None:
    growing = ByteWindows(period, tuple(sorted(windows)))
    allowed = [received + growing.at(received) for received in range(2 * period + 1)]
    assert allowed == sorted(allowed)
    assert allowed[period] - period == growing.windows[0]
    assert all(growing.at(received) >= growing.windows[0] for received in range(2 * period))
