"""Metrics of a cluster manager from its jobs: completion times, queueing, makespan, preemptions, fairness. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from workloads.managers.account import JobOutcome
from workloads.managers.ledger import CAUSES

PERCENTILES: Final = (50, 95, 99)


def outcome_metrics(jobs: Sequence[JobOutcome]) -> dict[str, float]:
    """Return the metrics by name. Times in seconds, of the jobs that ended; 0 where there are none.

    ``jct``: from submission to end. ``queue``: time in which the job held no GPUs, and by cause its mean
    (``queue_share_s``: a quota or a line; ``queue_capacity_s``: too few GPUs free; ``queue_fragmentation_s``: enough
    free, but not where they are wanted). ``makespan_s``: from the first submission to the last
    end. ``preempted_share``: preemptions over jobs that started. ``unfairness``: 95th percentile of JCT over the time
    that the job takes alone. ``unsuccessful``: jobs that ended otherwise than passed, and their share of the GPU time
    of all that ended.
    """
    ended = [job for job in jobs if job.end_s is not None]
    started = [job for job in jobs if job.start_s is not None]
    last = max((job.end_s or 0.0 for job in ended), default=0.0)
    preemptions = sum(job.preemptions for job in jobs)
    return {
        **_spread("jct", [job.jct_s or 0.0 for job in ended]),
        **_spread("queue", [queued_s(job) for job in ended]),
        **{f"queue_{cause}_s": _mean([job.waits.get(cause, 0.0) for job in ended]) for cause in CAUSES},
        "makespan_s": last - min((job.submit_s for job in jobs), default=0.0) if ended else 0.0,
        "preemptions": float(preemptions),
        "migrations": float(sum(job.migrations for job in jobs)),
        "preempted_share": preemptions / len(started) if started else 0.0,
        "failed_attempts": float(sum(job.attempts - 1 for job in jobs)),
        "unsuccessful": float(sum(job.status != "passed" for job in ended)),
        "unsuccessful_gpu_share": _share([(job.allocated_gpu_s, job.status != "passed") for job in ended]),
        "unfairness": _percentile([(job.jct_s or 0.0) / job.alone_s for job in ended if job.alone_s > 0], 95),
    }


def queued_s(job: JobOutcome) -> float:
    """Seconds of waiting of a job that has ended: before it started, and while it was preempted."""
    if job.end_s is None:
        raise ValueError(f"job '{job.name}' has not ended")
    return max(0.0, job.end_s - job.submit_s - job.held_s)


def _spread(name: str, values: Sequence[float]) -> Mapping[str, float]:
    return {f"{name}_mean_s": _mean(values), **{f"{name}_p{q}_s": _percentile(values, q) for q in PERCENTILES}}


def _share(parts: Sequence[tuple[float, bool]]) -> float:
    """Of the sum of the first, what is with those that are true."""
    whole = sum(value for value, _ in parts)
    return sum(value for value, counts in parts if counts) / whole if whole > 0 else 0.0


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _percentile(values: Sequence[float], share: int) -> float:
    return float(np.percentile(values, share)) if len(values) else 0.0
