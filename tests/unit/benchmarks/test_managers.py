"""The benchmark of replays under every manager: a row says what takes the time, or that it was stopped."""

from __future__ import annotations

import pytest

from benchmarks import managers
from testbed.reproduce.kept_replays import Cell, result_of

CELL = Cell("clos", "crux", "fifo", days=0.2, crowded=True)


def test_a_replay_says_how_often_each_part_was_at_work_and_for_how_long() -> None:
    found = result_of(CELL)
    line = managers._line(CELL, found, reference=0.06)
    assert line.outcome == "pass" and not line.note
    work = found["work"]
    assert work["placed"] == found["finished"] + found["running"]
    assert work["events"] >= work["decisions"] > 0
    assert sum(work[seconds] for _, seconds in managers.PARTS.values()) <= found["cpu_s"]


def test_a_row_above_the_target_names_the_part_that_takes_most() -> None:
    work = {"events": 10, "managing_s": 1.0, "placed": 5, "placing_s": 0.5, "decisions": 4, "decision_s": 8.0}
    found = {**result_of(CELL), "cpu_s": 9.9, "work": {**work, "settled": 0, "settling_s": 0.0}}
    line = managers._line(CELL, found, reference=0.06)
    assert line.outcome == "missed"
    assert line.note == "mostly deciding: 2000 ms each"


def test_a_replay_that_takes_too_long_is_stopped_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managers, "PATIENCE_S", -1.0)
    share, reference = managers._timed(CELL)
    line = managers._line(CELL, share, reference)
    assert isinstance(share, float) and 0.0 <= share < 0.1
    assert line.outcome == "missed" and line.note.startswith("stopped when")
