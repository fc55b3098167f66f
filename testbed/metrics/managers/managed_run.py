"""A run whose jobs a manager placed: the stints of a job are merged into one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testbed.experiment.experiment import Experiment
from testbed.metrics.job_metrics import (
    CAUSES,
    IterationTimes,
    JobMetrics,
    MeaningfulLevels,
    decision_for,
    durations_of,
    job_metrics,
    shared_gpu_s,
)
from testbed.metrics.losses import Loss, losses_by_stint, merged
from testbed.metrics.measured import MeasuredJob, MeasuredRun, measured_run, packets_of
from testbed.metrics.network.message_metrics import message_metrics, messages_by_job
from testbed.metrics.outage_metrics import outages_of
from testbed.results.record import ManagedRecord, MessageRow, RunRecord
from workloads.job import Job
from workloads.managers.account import JobOutcome


@dataclass(frozen=True)
class ManagedRun:
    """A run whose jobs a manager placed."""

    record: RunRecord
    managed: ManagedRecord
    experiment: Experiment

    @property
    def shared_s(self) -> float:
        """GPU time (s) that the sum over the stints counts more than once."""
        return shared_gpu_s(self.managed.stints, self.record.windows)

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

    @property
    def partly_started(self) -> dict[str, str]:
        """Jobs that hold some of their GPUs at the end of the run and wait for the rest, in words."""
        return {each.name: f"holds {each.holds} of {each.gpus} GPUs" for each in self.managed.outcomes if each.holds}

    @property
    def measured(self) -> MeasuredRun:
        """The run with its jobs, without metrics of the manager.

        A job has the GPUs of its last stint. GPU time counts while it holds GPUs, so starting and migrating is idle
        time, and so are GPUs of jobs that wait for more and have not begun.
        """
        levels = MeaningfulLevels(self.managed.stints, self.experiment.levels)
        started = [each for each in self.managed.outcomes if self.managed.stints_of[each.name]]
        jobs = [self._measured(each, levels) for each in started]
        held_s = sum(each.allocated_gpu_s for each in self.managed.outcomes if each not in started)
        return measured_run(self.record, jobs, self.shared_s).with_idle_holders(held_s)

    @cached_property
    def _stints(self) -> dict[str, Job]:
        return {job.name: job for job in self.managed.stints}

    @cached_property
    def _metrics(self) -> dict[str, JobMetrics]:
        return {name: job_metrics(self.record, job) for name, job in self._stints.items()}

    @cached_property
    def _messages(self) -> dict[str, list[MessageRow]]:
        return messages_by_job(self.record)

    @cached_property
    def _losses(self) -> dict[str, Loss]:
        return losses_by_stint(self.record, self.managed.stints, self._metrics, self.experiment.fabric)

    def _measured(self, outcome: JobOutcome, levels: MeaningfulLevels) -> MeasuredJob:
        """The job without times by formula: it was on other GPUs from time to time."""
        names = self.managed.stints_of[outcome.name]
        last = self._stints[names[-1]]
        decision = decision_for(self.record, last)
        metrics = _merged(
            self.record, outcome, [self._stints[name] for name in names], [self._metrics[n] for n in names]
        )
        return MeasuredJob(
            metrics,
            decision,
            levels.of(last, decision),
            self._loss(outcome, names, metrics),
            outcome=outcome,
            stints=tuple(names),
            messages=message_metrics(self._messages, names),
            packets=packets_of(self.record, names),
            outages=outages_of(self.record, [self._stints[name] for name in names]),
        )

    def _loss(self, outcome: JobOutcome, names: Sequence[str], metrics: JobMetrics) -> Loss | None:
        """What the job lost in its stints, and while it held GPUs without iterating; None if a stint is unknown.

        That time is due to other jobs where the manager stopped or moved the job, or there are others and it made no
        iteration; starting for the first time, or again after a failure, it would take alone as well.
        """
        counting = [name for name in names if self._metrics[name].counted]
        if any(name not in self._losses for name in counting):
            return None
        losses = [self._losses[name] for name in counting]
        known = sum(loss.alone_gpu_s + loss.own_gpu_s + loss.failures_gpu_s + loss.others_gpu_s for loss in losses)
        interrupted = outcome.preemptions + outcome.migrations > 0 or not counting
        rest_s = sum(metrics.idle_s.values()) - known
        stood_gpu_s = 3600 * outages_of(self.record, [self._stints[name] for name in names]).get("gpu_hours", 0.0)
        due_to_others = interrupted and len(self.managed.outcomes) > 1
        return merged(losses, metrics.busy_s, rest_s, due_to_others=due_to_others, stood_gpu_s=stood_gpu_s)


def _merged(record: RunRecord, outcome: JobOutcome, stints: Sequence[Job], items: Sequence[JobMetrics]) -> JobMetrics:
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
