"""What counts as a fault survived or ended well: in time, one line, an honest record, nothing left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import faults
from benchmarks.fault_kinds import FAULTS, GROUPS, Fault
from benchmarks.faults import Trial, problems
from benchmarks.leftovers import Traces, processes_of, state_of_record
from testbed.results.run_directory import RunDirectory

ENDED = Trial(1, ("ovsdb-server ended by signal 9",), 0.5, -10.0, "UNFINISHED", ())
SURVIVED = Trial(4, (), 9.0, -6.0, "invalid; link tor0->agg0: was down (3 to 8 s)", ())
KILLED = Fault(lambda scene: None, "ovsdb-server ended")
DOWN = Fault(lambda scene: None, "was down")


def test_every_fault_is_in_one_group() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(FAULTS)


def test_a_run_that_ends_or_goes_on_as_it_should_has_no_problem() -> None:
    assert problems(KILLED, ENDED) == []
    assert problems(DOWN, SURVIVED) == []
    assert problems(Fault(lambda scene: None, silent=True), replace(ENDED, lines=(), status=-9)) == []


@pytest.mark.parametrize(
    ("fault", "made", "problem"),
    [
        (KILLED, replace(ENDED, late_s=2.0), "17.0 s after the fault or the limit"),
        (KILLED, replace(ENDED, lines=()), "0 lines"),
        (KILLED, replace(ENDED, lines=("Traceback", *ENDED.lines)), "2 lines"),
        (KILLED, replace(ENDED, lines=("failed",)), "'ovsdb-server ended' is not said"),
        (KILLED, replace(ENDED, record="ok"), "status 1, but the record: ok"),
        (DOWN, replace(SURVIVED, record="UNFINISHED"), "status 4, but the record: UNFINISHED"),
        (DOWN, replace(SURVIVED, record="damaged: was down"), "status 4, but the record: damaged: was down"),
        (DOWN, replace(SURVIVED, record="ok"), "'was down' is not said"),
        (DOWN, replace(SURVIVED, lines=("x",)), "it said 'x' and went on"),
        (DOWN, replace(SURVIVED, left=("process 7 (python)",)), "left: process 7 (python)"),
    ],
)
def test_what_is_not_as_it_should_be_is_said(fault: Fault, made: Trial, problem: str) -> None:
    assert problem in problems(fault, made)


def test_trials_are_kept_and_those_that_time_did_not_allow_are_inconclusive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = []

    def make(fault: Fault) -> Trial:
        made.append(fault)
        return ENDED

    monkeypatch.setattr(faults, "trial", make)
    rows = tmp_path / "rows.jsonl"
    faults.measure(["ovsdb-server killed"], rows, 60.0)
    lines = faults.measure(["ovsdb-server killed", "worker killed"], rows, -1.0)
    assert ([line.outcome for line in lines], len(made)) == (["pass", "inconclusive"], 1)


def test_what_was_not_there_before_is_left() -> None:
    before = Traces(frozenset({"lo"}), frozenset({"/"}), frozenset(), False)
    after = Traces(frozenset({"lo", "tor0-1"}), frozenset({"/", "/run/x"}), frozenset({"testbed-1"}), True)
    assert after.beyond(before) == ["interface tor0-1", "mount /run/x", "file testbed-1", "the machine's lock"]
    assert before.beyond(after) == []


def test_no_process_carries_the_mark_of_a_run_that_never_was() -> None:
    assert list(processes_of(0)) == []


def test_the_state_of_a_record_is_what_its_directory_says(tmp_path: Path) -> None:
    assert state_of_record(tmp_path / "none") == "none"
    directory = RunDirectory.create(tmp_path, "hello")
    assert state_of_record(tmp_path) == "UNFINISHED"
    directory.write_summary({"schema_version": 2, "runs": []})
    directory.finish()
    assert state_of_record(tmp_path).startswith("damaged")
