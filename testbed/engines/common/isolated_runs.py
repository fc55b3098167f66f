"""Each job by itself: the runs of a scheduler that isolates jobs, and their record as one. Pure.

A scheduler with the attribute ``alone`` (``ideal``) represents a fabric without contention. Its
jobs run one after the other, each with the whole fabric; what they did is put side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from controller.schedulers.registry import create
from testbed.experiment.experiment import Experiment
from testbed.results.record import Fidelity, RunRecord, Verdict, Window

_WORST: dict[Verdict, int] = {"ok": 0, "degraded": 1, "invalid": 2}


def isolates_jobs(experiment: Experiment) -> bool:
    """Whether the scheduler of ``experiment`` runs each job by itself."""
    scheduler = create(experiment.scheduler.name, experiment.scheduler.options, experiment.seed)
    return scheduler.alone and len(experiment.jobs) > 1


def each_alone(experiment: Experiment) -> tuple[Experiment, ...]:
    """One experiment per job, which starts at once."""
    return tuple(replace(experiment, jobs=(replace(job, start_s=0.0),)) for job in experiment.jobs)


def side_by_side(records: Sequence[RunRecord]) -> RunRecord:
    """Return one record of all jobs; times go on where the record before ended. At least one record."""
    shifts = [0.0, *accumulate(record.duration_s for record in records)]
    shifted = [_later(record, seconds) for record, seconds in zip(records, shifts, strict=False)]
    return RunRecord(
        choice=records[0].choice,
        engine=records[0].engine,
        duration_s=shifts[-1],
        windows={job: window for record in shifted for job, window in record.windows.items()},
        iterations=tuple(row for record in shifted for row in record.iterations),
        links=tuple(row for record in shifted for row in record.links),
        decisions=tuple(row for record in shifted for row in record.decisions),
        fidelity=_worst(record.fidelity for record in shifted),
        environment={f"run {index}": record.environment for index, record in enumerate(records)},
        alone=tuple(row for record in records for row in record.alone),
        messages=tuple(row for record in shifted for row in record.messages),
        requests=tuple(row for record in shifted for row in record.requests),
    )


def _later(record: RunRecord, seconds: float) -> RunRecord:
    return replace(
        record,
        windows={job: Window(w.start_s + seconds, w.end_s + seconds) for job, w in record.windows.items()},
        iterations=tuple(
            replace(row, start_s=row.start_s + seconds, end_s=row.end_s + seconds) for row in record.iterations
        ),
        messages=tuple(
            replace(row, start_s=row.start_s + seconds, end_s=row.end_s + seconds) for row in record.messages
        ),
        requests=tuple(row.later(seconds) for row in record.requests),
        links=tuple(replace(row, time_s=row.time_s + seconds) for row in record.links),
        decisions=tuple(replace(row, time_s=row.time_s + seconds) for row in record.decisions),
        fidelity=replace(
            record.fidelity,
            findings=tuple(
                replace(finding, from_s=finding.from_s + seconds, to_s=finding.to_s + seconds)
                for finding in record.fidelity.findings
            ),
        ),
    )


def _worst(found: Iterable[Fidelity]) -> Fidelity:
    every = list(found)
    worst = max(every, key=lambda fidelity: _WORST[fidelity.verdict])
    return Fidelity(
        verdict=worst.verdict,
        reasons=tuple(dict.fromkeys(reason for fidelity in every for reason in fidelity.reasons)),
        min_idle_cpu=min(fidelity.min_idle_cpu for fidelity in every),
        max_timer_lateness_s=max(fidelity.max_timer_lateness_s for fidelity in every),
        link_rate_error=max(fidelity.link_rate_error for fidelity in every),
        unintended_drops=sum(fidelity.unintended_drops for fidelity in every),
        retransmits=sum(fidelity.retransmits for fidelity in every),
        stolen_cpu=sum(fidelity.stolen_cpu for fidelity in every) / len(every),
        machine_caused=all(fidelity.machine_caused or fidelity.verdict == "ok" for fidelity in every)
        and worst.verdict != "ok",
        findings=tuple(finding for fidelity in every for finding in fidelity.findings),
        max_run_delay=max(fidelity.max_run_delay for fidelity in every),
        lower_level_share=max(fidelity.lower_level_share for fidelity in every),
    )
