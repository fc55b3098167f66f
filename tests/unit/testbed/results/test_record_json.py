"""Records as JSON: what older versions wrote is read with the keys of today."""

from __future__ import annotations

import json

from controller.decision import Decision
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.results.record import DecisionRow, Fidelity, ManagedRecord, RunRecord
from testbed.results.record_json import decision_row_from, decision_row_to, run_from, run_to
from testbed.results.schema import run_today
from workloads.job import Flow, Job, Phase, Transfer
from workloads.managers.account import JobOutcome

OUTCOME = JobOutcome("moves", 8, 0.0, 1.0, 9.0, 8.0, preemptions=1, migrations=2)
RECORD = RunRecord(
    choice=SchedulerChoice("crux"),
    engine="flow",
    duration_s=10.0,
    windows={},
    iterations=(),
    links=(),
    decisions=(),
    fidelity=Fidelity("ok"),
    environment={},
    managed=ManagedRecord((), {"moves": ()}, (OUTCOME,), {"moves": "too large"}),
)


def a_job(name: str) -> Job:
    flow = Flow(f"{name}:0", name, "h0n0p0", "h1n0p0", 1e9, 20000, 5000)
    return Job(name, "test", ("h0g0", "h1g0"), (Phase(1.0, 0.0, "ring", (Transfer(flow.id, 1e9),)),), (flow,), 1e15, 1)


def read(text: str) -> RunRecord:
    return run_from(run_today(json.loads(text)), iterations=(), links=(), decisions=())


def test_migrations_that_schema_1_called_moves_are_read() -> None:
    today = json.dumps(run_to(RECORD))
    assert '"migrations": 2' in today
    assert read(today) == RECORD
    assert read(today.replace('"migrations": 2', '"moves": 2')) == RECORD


def test_a_decision_says_how_many_levels_and_paths_it_changes() -> None:
    first = DecisionRow(0.0, "arrival of b", Decision(paths={"f": ("x",), "g": ("x",)}, levels={"a": 0, "b": 1}))
    second = DecisionRow(1.0, "departure of c", Decision(paths={"f": ("y",), "h": ("x",)}, levels={"a": 1, "b": 1}))
    assert first.after(()) == first
    row = second.after([first])
    assert (row.levels_changed, row.paths_changed) == (1, 1)
    assert decision_row_from(decision_row_to(row)) == row


def test_a_job_that_gets_a_level_or_loses_it_changes_its_level_unless_that_is_the_lowest() -> None:
    jobs = [a_job(name) for name in ("gets", "loses", "lowest", "comes")]
    ids = {job.name: (job.flows[0].id, ("x",)) for job in jobs}
    before = Decision(paths=dict(ids[name] for name in ("gets", "loses", "lowest")), levels={"loses": 2, "gone": 0})
    now = Decision(paths=dict(ids.values()), levels={"gets": 0, "lowest": 7, "comes": 1})
    row = DecisionRow(1.0, "arrival of comes", now).after([DecisionRow(0.0, "arrival of lowest", before)], jobs, 7)
    assert row.levels_changed == 2


def test_decisions_of_before_changes_were_counted_are_still_read() -> None:
    row = DecisionRow(1.0, "arrival of a", Decision(levels={"a": 1}))
    old = {key: value for key, value in decision_row_to(row).items() if not key.endswith("_changed")}
    assert decision_row_from(old) == row
