"""A run whose jobs a manager placed, as an entry of ``summary.json``: the stints of a job are merged. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from testbed.experiment.experiment import Experiment
from testbed.metrics.job_metrics import (
    CAUSES,
    IterationTimes,
    JobMetrics,
    durations_of,
    entry_of,
    job_metrics,
    shared_gpu_s,
)
from testbed.metrics.manager_metrics import outcome_metrics, queued_s
from testbed.results.record import ManagedRecord, RunRecord
from workloads.job import Job
from workloads.managers.account import JobOutcome


def managed_entry(record: RunRecord, managed: ManagedRecord, experiment: Experiment) -> dict[str, Any]:
    """Return the entry of the run: that of any run, with the outcome of each job and the metrics of the manager.

    A job has the GPUs of its last stint. GPU time counts while it holds GPUs, so that starting and moving is idle.
    """
    whole = replace(experiment, jobs=managed.stints)
    stints = {job.name: job for job in managed.stints}
    started = [each for each in managed.outcomes if managed.stints_of[each.name]]
    items = [_merged(record, each, [stints[name] for name in managed.stints_of[each.name]]) for each in started]
    shared_s = shared_gpu_s(managed.stints, record.windows)
    entry = entry_of(items, record, whole.levels, shared_s)
    for job, outcome in zip(entry["jobs"], started, strict=True):
        job |= {"name": outcome.name, "stints": list(managed.stints_of[outcome.name]), "alone_s": None, "loss": None}
        job |= {"preemptions": outcome.preemptions, "migrations": outcome.migrations}
        job |= {"status": outcome.status, "attempts": outcome.attempts}
        job["queue_s"] = None if outcome.end_s is None else queued_s(outcome)
    entry["loss"] = None
    _count_idle_holders(entry, sum(each.allocated_gpu_s for each in managed.outcomes if each not in started))
    entry["manager"] = {
        **outcome_metrics(managed.outcomes),
        "allocated": _allocated(managed, experiment, record.duration_s, shared_s),
        "hosts_per_job": _hosts_per_job(managed.stints, experiment),
        "cross_tor_bytes": _cross_tor_bytes(record, experiment),
        "unfinished": [each.name for each in managed.outcomes if each.end_s is None],
        "refused": dict(managed.refused),
    }
    return entry


def _count_idle_holders(entry: dict[str, Any], held_gpu_s: float) -> None:
    """Jobs that hold GPUs and wait for more have not begun: their GPUs are idle."""
    busy = entry["gpu_utilization"] * entry["allocated_gpu_s"]
    entry["allocated_gpu_s"] += held_gpu_s
    entry["gpu_idle_s"]["start"] += held_gpu_s
    entry["gpu_utilization"] = busy / entry["allocated_gpu_s"] if entry["allocated_gpu_s"] > 0 else 0.0


def _merged(record: RunRecord, outcome: JobOutcome, stints: Sequence[Job]) -> JobMetrics:
    items = [job_metrics(record, job) for job in stints]
    durations = [length for job in stints for length in durations_of(record, job)]
    left_out = sum(_window_s(record, item.job) * len(item.job.gpus) - item.allocated_s for item in items)
    allocated = max(0.0, outcome.allocated_gpu_s - left_out)
    busy = sum(item.busy_s for item in items)
    idle = {cause: sum(item.idle_s[cause] for item in items) for cause in CAUSES}
    idle["start"] = max(0.0, allocated - busy - idle["exposed"] - idle["straggler"])
    p50, p99 = np.percentile(durations, [50, 99]).tolist() if durations else (0.0, 0.0)
    return JobMetrics(
        job=stints[-1],
        iterations=sum(item.iterations for item in items),
        disturbed=sum(item.disturbed for item in items),
        times=IterationTimes(float(np.mean(durations)), p50, p99) if durations else None,
        allocated_s=allocated,
        busy_s=busy,
        idle_s=idle,
        work_flop=sum(item.work_flop for item in items),
        jct_s=outcome.jct_s,
        jct_is="measured",
    )


def _window_s(record: RunRecord, job: Job) -> float:
    window = record.windows.get(job.name)
    return 0.0 if window is None else window.end_s - window.start_s


def _allocated(managed: ManagedRecord, experiment: Experiment, duration_s: float, shared_s: float) -> float:
    """GPU time that jobs held, that of shared GPUs once, as a share of that of all GPUs."""
    whole = len(experiment.fabric.gpus) * duration_s
    held = sum(each.allocated_gpu_s for each in managed.outcomes) - shared_s
    return held / whole if whole > 0 else 0.0


def _hosts_per_job(stints: Sequence[Job], experiment: Experiment) -> float:
    """Hosts of a stint, on average."""
    fabric = experiment.fabric
    return float(np.mean([len({fabric.host_of_gpu[gpu] for gpu in job.gpus}) for job in stints])) if stints else 0.0


def _cross_tor_bytes(record: RunRecord, experiment: Experiment) -> float:
    """Bytes that ToRs sent up."""
    fabric = experiment.fabric
    tors = {fabric.uplink(port).target for port in fabric.ports}
    up = {name for name, link in fabric.links.items() if link.kind == "tor-agg" and link.source in tors}
    return sum(row.bytes for row in record.links if row.link in up)
