"""Windows by bytes: each for an equal part of an iteration, and again in the next one."""

from __future__ import annotations

from workloads.iteration.byte_windows import ByteWindows


def test_each_window_holds_for_its_part_of_the_period_and_again_in_the_next() -> None:
    windows = ByteWindows(10, (1, 2))
    assert [windows.at(received) for received in (0, 4, 5, 9, 10, 14, 15)] == [1, 1, 2, 2, 1, 1, 2]
