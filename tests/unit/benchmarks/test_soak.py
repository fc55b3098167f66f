"""Many runs in a row: which count as fine, and what counts as grown."""

from __future__ import annotations

import pytest

from benchmarks import soak
from benchmarks.soak import Held, Turn, believable, held, lines_of

FIRST = Held(descriptors=20, memory_mib=150.0, namespaces=6, mounts=30)


def turns(*after: Held) -> list[Turn]:
    return [Turn("ok", True, (), each) for each in after]


@pytest.mark.parametrize(
    ("verdict", "by_machine", "fine"), [("ok", False, True), ("degraded", True, True), ("degraded", False, False)]
)
def test_a_run_is_fine_if_it_is_ok_or_names_the_machine(verdict: str, by_machine: bool, fine: bool) -> None:
    assert believable({"verdict": verdict, "machine_caused": by_machine}) is fine


def test_what_is_held_after_the_last_run_is_compared_with_the_fifth() -> None:
    early = Held(10, 100.0, 5, 29)
    steady = lines_of(turns(early, early, early, early, FIRST, Held(20, 151.5, 6, 30)))
    assert [line.outcome for line in steady] == ["pass"] * 6
    grown = lines_of(turns(early, early, early, early, FIRST, Held(21, 153.0, 7, 31)))
    assert [line.outcome for line in grown] == ["pass", "pass", *["missed"] * 4]


def test_what_a_run_leaves_and_a_verdict_without_a_reason_outside_are_misses() -> None:
    made = [*turns(FIRST), Turn("degraded, 3 packets dropped", False, ("process 7 (python)",), FIRST)]
    ended, left, *_ = lines_of(made)
    assert (ended.columns["found"], ended.outcome, ended.note) == ("1 of 2", "missed", "degraded, 3 packets dropped")
    assert (left.outcome, left.note) == ("missed", "process 7 (python)")


def test_every_run_is_told_and_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(soak, "run_once", lambda scenario: ("ok", True))
    monkeypatch.setattr(soak, "left_by", lambda run, before: [])
    lines = soak.measure("hello", 3)
    assert lines[0].columns["found"] == "3 of 3"
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == ["1/3", "2/3", "3/3"]


def test_this_process_holds_something() -> None:
    now = held()
    assert now.descriptors >= 3 and now.memory_mib > 1 and now.namespaces >= 3 and now.mounts >= 1
