"""Records as JSON: what older versions wrote is read with the keys of today."""

from __future__ import annotations

import json

from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.results.record import Fidelity, ManagedRecord, RunRecord
from testbed.results.record_json import run_from, run_to
from testbed.results.schema import run_today
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


def read(text: str) -> RunRecord:
    return run_from(run_today(json.loads(text)), iterations=(), links=(), decisions=())


def test_migrations_that_schema_1_called_moves_are_read() -> None:
    today = json.dumps(run_to(RECORD))
    assert '"migrations": 2' in today
    assert read(today) == RECORD
    assert read(today.replace('"migrations": 2', '"moves": 2')) == RECORD
