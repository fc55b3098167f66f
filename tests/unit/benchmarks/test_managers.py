"""The benchmark of replays under every manager: a row says what takes the time, or that it was stopped."""

from __future__ import annotations

import pytest

from benchmarks import managers
from testbed.reproduce.kept_replays import Cell, result_of

CELL = Cell("clos", "crux", "fifo", days=0.2, crowded=True)


def test_a_replay_says_how_often_each_part_was_at_work_and_for_how_long() -> None:
    found = result_of(CELL)
    work = found["work"]
    assert work["placing"]["times"] == found["finished"] + found["running"]
    assert work["acting"]["times"] >= work["deciding"]["times"] > 0
    assert sum(part["cpu_s"] for part in work.values()) <= found["cpu_s"]


def test_a_row_below_the_target_needs_no_reason() -> None:
    line = managers._line(CELL, {**result_of(CELL), "cpu_s": 4.9}, reference=0.06)
    assert line.outcome == "pass" and not line.note


def test_a_row_above_the_target_names_the_part_that_takes_most() -> None:
    work = {"acting": {"times": 10, "cpu_s": 1.0}, "deciding": {"times": 4, "cpu_s": 8.0}}
    found = {**result_of(CELL), "cpu_s": 9.9, "work": work}
    line = managers._line(CELL, found, reference=0.06)
    assert line.outcome == "missed"
    assert line.note == "mostly deciding: 2000.00 ms each"


def test_a_replay_that_takes_too_long_is_stopped_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managers, "PATIENCE_S", -1.0)
    found, reference = managers._timed(CELL)
    line = managers._line(CELL, found, reference)
    assert 0.0 <= found["stopped"] < 0.1
    assert line.outcome == "missed" and line.note.startswith("stopped when")
