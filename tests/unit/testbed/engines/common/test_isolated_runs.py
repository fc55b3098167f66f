"""A scheduler that isolates jobs: one run per job, put side by side as one record."""

from __future__ import annotations

from dataclasses import replace

from testbed.api import prepare
from testbed.engines.common.isolated_runs import each_alone, side_by_side
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.results.record import Fidelity, IterationRow, LinkRow, RunRecord, Window

EXPERIMENT = prepare("hello").experiments[0]


def record_of(job: str, **fidelity: object) -> RunRecord:
    return RunRecord(
        choice=SchedulerChoice("ideal"),
        engine="emulation",
        duration_s=10.0,
        windows={job: Window(1.0, 9.0)},
        iterations=(IterationRow(job, "h0g0", 0, 1.0, 1.0, 1.0, 0.0, 0.0, 2.0),),
        links=(LinkRow(3.0, "a", 7, 100.0, 0.0, 0),),
        decisions=(),
        fidelity=Fidelity(**fidelity),  # type: ignore[arg-type]
    )


def test_every_job_gets_the_fabric_for_itself_and_starts_at_once() -> None:
    late = replace(EXPERIMENT, jobs=tuple(replace(job, start_s=3.0) for job in EXPERIMENT.jobs))
    parts = each_alone(late)
    assert [[job.name for job in part.jobs] for part in parts] == [[job.name] for job in EXPERIMENT.jobs]
    assert all(job.start_s == 0.0 for part in parts for job in part.jobs)


def test_the_second_run_begins_where_the_first_ended() -> None:
    both = side_by_side([record_of("big"), record_of("small")])
    assert both.duration_s == 20.0
    assert both.windows == {"big": Window(1.0, 9.0), "small": Window(11.0, 19.0)}
    assert [row.start_s for row in both.iterations] == [1.0, 11.0]
    assert [row.time_s for row in both.links] == [3.0, 13.0]


def test_the_verdict_is_the_worst_of_all_with_every_reason_once() -> None:
    found = side_by_side(
        [
            record_of("big", verdict="degraded", reasons=("a", "b"), min_idle_cpu=0.3, machine_caused=True),
            record_of("small", verdict="invalid", reasons=("b",), retransmits=2),
        ]
    ).fidelity
    assert (found.verdict, found.reasons, found.min_idle_cpu, found.retransmits) == ("invalid", ("a", "b"), 0.3, 2)
    assert not found.machine_caused
