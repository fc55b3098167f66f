"""A run whose jobs a manager placed, as an entry of ``summary.json``: the stints of a job are merged into one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from testbed.experiment.experiment import Experiment
from testbed.metrics.job_metrics import (
    CAUSES,
    IterationTimes,
    JobMetrics,
    decision_for,
    durations_of,
    job_metrics,
    shared_gpu_s,
)
from testbed.metrics.manager_catalogue import MANAGER
from testbed.metrics.manager_metrics import outcome_metrics
from testbed.metrics.measured import MeasuredJob, measured_run
from testbed.metrics.metric import entry_of
from testbed.results.job_outcome import JobOutcome
from testbed.results.record import ManagedRecord, RunRecord
from workloads.job import Job


@dataclass(frozen=True, slots=True)
class ManagedRun:
    """A managed run, for metrics of its manager; ``shared_s`` of the jobs' GPU time is counted twice."""

    record: RunRecord
    managed: ManagedRecord
    experiment: Experiment
    shared_s: float

    @property
    def allocated(self) -> float:
        """GPU time that jobs held, that of shared GPUs once, as a share of that of all GPUs."""
        whole = len(self.experiment.fabric.gpus) * self.record.duration_s
        held = sum(each.allocated_gpu_s for each in self.managed.outcomes) - self.shared_s
        return held / whole if whole > 0 else 0.0

    @property
    def hosts_per_job(self) -> float:
        """Hosts of a stint, on average."""
        stints, host_of = self.managed.stints, self.experiment.fabric.host_of_gpu
        return float(np.mean([len({host_of[gpu] for gpu in job.gpus}) for job in stints])) if stints else 0.0

    @property
    def cross_tor_bytes(self) -> float:
        """Bytes that ToRs sent up."""
        fabric = self.experiment.fabric
        tors = {fabric.uplink(port).target for port in fabric.ports}
        up = {name for name, link in fabric.links.items() if link.kind == "tor-agg" and link.source in tors}
        return sum(row.bytes for row in self.record.links if row.link in up)

    @property
    def unfinished(self) -> list[str]:
        """Jobs that have not ended."""
        return [each.name for each in self.managed.outcomes if each.end_s is None]


def managed_entry(record: RunRecord, managed: ManagedRecord, experiment: Experiment) -> dict[str, Any]:
    """Return the entry of the run: that of any run, with the outcome of each job and the metrics of the manager.

    A job has the GPUs of its last stint. GPU time counts while it holds GPUs, so starting and migrating is idle time.
    """
    levels = replace(experiment, jobs=managed.stints).levels
    stints = {job.name: job for job in managed.stints}
    started = [each for each in managed.outcomes if managed.stints_of[each.name]]
    jobs = [
        _measured(record, each, [stints[name] for name in managed.stints_of[each.name]], levels) for each in started
    ]
    run = ManagedRun(record, managed, experiment, shared_gpu_s(managed.stints, record.windows))
    measured = replace(
        measured_run(record, jobs, run.shared_s),
        manager={**outcome_metrics(managed.outcomes), **entry_of(MANAGER, run)},
    )
    held_s = sum(each.allocated_gpu_s for each in managed.outcomes if each not in started)
    return measured.with_idle_holders(held_s).entry()


def _measured(record: RunRecord, outcome: JobOutcome, stints: Sequence[Job], levels: int) -> MeasuredJob:
    """The job without an analysis of its paths: it was on other GPUs from time to time."""
    decision = decision_for(record, stints[-1])
    names = tuple(job.name for job in stints)
    return MeasuredJob(_merged(record, outcome, stints), decision, levels, outcome=outcome, stints=names)


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
        jct_source="measured",
    )


def _window_s(record: RunRecord, job: Job) -> float:
    window = record.windows.get(job.name)
    return 0.0 if window is None else window.end_s - window.start_s
