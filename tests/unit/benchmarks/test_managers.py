"""The benchmark of replays under every manager: a row says what takes the time, or that it was stopped."""

from __future__ import annotations

import pytest

from benchmarks import managers
from testbed.reproduce import kept_replays
from testbed.reproduce.kept_replays import Cell, result_of, trace_of
from topologies.clos import clos

SMALL = clos(hosts=4, gpus_per_host=8, nics_per_host=4, tors=2, aggregations=2, port_rate=100e9, fabric_rate=400e9)
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


def test_a_job_that_was_preempted_and_waits_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_replays, "FABRICS", {"clos": lambda: SMALL})
    cell = Cell("clos", "ecmp", "srtf", days=1.0, crowded=True)
    found = result_of(cell)
    assert found["manager"]["preemptions"] > 0 and found["waiting"] > 0
    assert found["jobs"] == sum(job.gpus <= len(SMALL.gpus) for job in trace_of(cell).jobs)
