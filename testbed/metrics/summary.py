"""The document ``summary.json`` of a run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from testbed.experiment.contention import nothing_to_schedule
from testbed.experiment.experiment import Experiment
from testbed.experiment.left_out import left_out_of_files
from testbed.metrics.catalogue import RUN
from testbed.metrics.comparison import comparison
from testbed.metrics.job_metrics import MeaningfulLevels, decision_for, job_metrics, shared_gpu_s
from testbed.metrics.losses import losses_by_stint
from testbed.metrics.managers.managed_run import ManagedRun
from testbed.metrics.managers.manager_metrics import MANAGER, outcome_metrics
from testbed.metrics.measured import MeasuredJob, analytic_times, measured_run, packets_of
from testbed.metrics.metric import entry_of
from testbed.metrics.network.message_metrics import message_metrics, messages_by_job
from testbed.metrics.outage_metrics import outages_of
from testbed.metrics.serving.request_metrics import request_metrics
from testbed.results.record import ManagedRecord, RunRecord
from testbed.results.schema import SCHEMA_VERSION


def summary(experiment: Experiment, records: Sequence[RunRecord]) -> dict[str, Any]:
    """The document ``summary.json``; the first record is the baseline.

    A function of what a run directory holds, so that it can be recomputed from the files.
    """
    runs = [_entry(record, experiment) for record in records]
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "scenario": experiment.name,
        "engine": records[0].engine if records else "",
        "seed": experiment.seed,
        "scale": {
            "bandwidth": experiment.scale.bandwidth,
            "time": experiment.scale.time,
            "mtu": experiment.mtu,
        },
        "rehearsal": next((r.environment["rehearsal"] for r in records if "rehearsal" in r.environment), None),
        "runs": runs,
        "comparison": comparison(runs),
        "nothing_to_schedule": nothing_to_schedule(experiment.jobs, experiment.fabric),
        "failures_not_reached": _failures_not_reached(experiment, records),
        "left_out_of_files": left_out_of_files(experiment.jobs, experiment.managed),
    }
    return document


def _failures_not_reached(experiment: Experiment, records: Sequence[RunRecord]) -> list[str]:
    """A line for each failure that was to come after the end of a run."""
    return [
        f"{record.scheduler}: {failure.part} was to fail at {failure.at_s:g} s, "
        f"the run ended after {record.duration_s:.4g} s"
        for record in records
        for failure in experiment.failures
        if failure.at_s >= record.duration_s
    ]


def run_entry(record: RunRecord, experiment: Experiment) -> dict[str, Any]:
    """The entry of a run whose jobs stay on the GPUs that the scenario says."""
    placed = record.jobs_of(experiment.jobs)
    levels = MeaningfulLevels(placed, experiment.levels)
    metrics = {job.name: job_metrics(record, job) for job in placed}
    losses = losses_by_stint(record, placed, metrics, experiment.fabric)
    messages = messages_by_job(record)
    jobs = [
        MeasuredJob(
            metrics[job.name],
            decision,
            levels.of(job, decision),
            losses.get(job.name),
            analytic_times(job, record, experiment),
            messages=message_metrics(messages, [job.name]),
            packets=packets_of(record, [job.name]),
            outages=outages_of(record, [job]),
            requests=request_metrics(record, job),
        )
        for job, decision in [(job, decision_for(record, job)) for job in placed]
    ]
    return entry_of(RUN, measured_run(record, jobs, shared_gpu_s(experiment.jobs, record.windows)))


def managed_entry(record: RunRecord, managed: ManagedRecord, experiment: Experiment) -> dict[str, Any]:
    """The entry of a run whose jobs a manager placed."""
    run = ManagedRun(record, managed, experiment)
    manager = {**outcome_metrics(managed.outcomes), **entry_of(MANAGER, run)}
    return entry_of(RUN, replace(run.measured, manager=manager), managed=True)


def _entry(record: RunRecord, experiment: Experiment) -> dict[str, Any]:
    if record.managed is not None:
        return managed_entry(record, record.managed, experiment)
    return run_entry(record, experiment)
