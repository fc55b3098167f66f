"""How a trial is counted: by a finding of the right kind, with the right words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import sabotage
from benchmarks.sabotage import Trial
from benchmarks.sabotage_kinds import KINDS, NotPossibleError


def finding(kind: str, what: str) -> dict[str, Any]:
    return {"kind": kind, "what": what, "from_s": 1.0, "to_s": 2.0, "links": [], "discarded": False}


QUOTA = finding("quota", "a CPU quota held ovs-vswitchd back")


@pytest.mark.parametrize(
    ("findings", "named"),
    [([QUOTA], True), ([finding("wait", QUOTA["what"])], False), ([finding("quota", "other")], False), ([], False)],
)
def test_a_trial_counts_where_the_right_finding_names_what_was_done(findings: list[Any], named: bool) -> None:
    found = sabotage._trial({"verdict": "degraded", "findings": findings}, KINDS["quota"])
    assert (found.named, found.verdict) == (named, "degraded")


def test_a_row_counts_named_trials_and_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = iter([Trial(True, "degraded", ()), Trial(False, "ok", ()), Trial(True, "degraded", ())])
    monkeypatch.setattr(sabotage, "trial", lambda kind, document: next(trials))
    (line,) = sabotage.measure(["quota"], 3)
    assert (line.columns["named"], line.columns["verdicts"], line.outcome) == ("2 of 3", "degraded 2, ok 1", "missed")


def test_what_this_machine_does_not_allow_is_said_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: object, document: object) -> Trial:
        raise NotPossibleError("no control group with a CPU quota can be made here")

    monkeypatch.setattr(sabotage, "trial", refuse)
    (line,) = sabotage.measure(["quota"], 3)
    assert (line.outcome, line.note) == ("inconclusive", "no control group with a CPU quota can be made here")


def test_trials_that_are_kept_are_not_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = []

    def make(kind: object, document: object) -> Trial:
        made.append(kind)
        return Trial(True, "degraded", ("quota 1.0-2.0 s: held back",))

    monkeypatch.setattr(sabotage, "trial", make)
    rows = tmp_path / "rows.jsonl"
    sabotage.measure(["quota"], 2, rows)
    with rows.open("a") as file:
        file.write('{"sabotage": "quo')  # killed in the middle of a line
    (line,) = sabotage.measure(["quota"], 3, rows)
    assert (line.columns["named"], len(made)) == ("3 of 3", 3)
    assert len(sabotage.kept_trials(rows, "quota", "userspace")) == 3
