"""Every metric of a cluster manager, once: key, unit, meaning, value and column. Replays have :data:`OUTCOMES` too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from testbed.metrics import formats
from testbed.metrics.metric import Column, Metric, entry_of

if TYPE_CHECKING:  # they import numpy, and tables need only keys and formats
    from testbed.metrics.managers.managed_run import ManagedRun
    from testbed.metrics.managers.outcomes import Outcomes
    from workloads.managers.account import JobOutcome

OUTCOMES: Final[tuple[Metric[Outcomes], ...]] = (
    Metric(
        "jct_mean_s",
        "s",
        "mean time from submission to end, of jobs that ended, as all times here",
        lambda jobs: jobs.jct_s.mean,
        column=Column("mean s", formats.tenths_of_seconds, note="JCT, from submission to end"),
    ),
    Metric(
        "jct_p50_s",
        "s",
        "its median",
        lambda jobs: jobs.jct_s.percentile(50),
        column=Column("p50", formats.tenths_of_seconds, optional=2),
    ),
    Metric(
        "jct_p95_s",
        "s",
        "its 95th percentile",
        lambda jobs: jobs.jct_s.percentile(95),
        column=Column("p95", formats.tenths_of_seconds, note="95th percentile of the JCT"),
    ),
    Metric(
        "jct_p99_s",
        "s",
        "its 99th percentile",
        lambda jobs: jobs.jct_s.percentile(99),
        column=Column("p99", formats.tenths_of_seconds, optional=1),
    ),
    Metric(
        "queue_mean_s",
        "s",
        "mean time before the start and while preempted",
        lambda jobs: jobs.queue_s.mean,
        column=Column("queue s", formats.tenths_of_seconds, note="time without GPUs, mean"),
    ),
    Metric("queue_p50_s", "s", "its median", lambda jobs: jobs.queue_s.percentile(50)),
    Metric("queue_p95_s", "s", "its 95th percentile", lambda jobs: jobs.queue_s.percentile(95)),
    Metric("queue_p99_s", "s", "its 99th percentile", lambda jobs: jobs.queue_s.percentile(99)),
    Metric("queue_share_s", "s", "its mean because of a quota or a queue", lambda jobs: jobs.wait_s("share").mean),
    Metric(
        "queue_capacity_s", "s", "its mean because too few GPUs are free", lambda jobs: jobs.wait_s("capacity").mean
    ),
    Metric(
        "queue_fragmentation_s",
        "s",
        "its mean because enough GPUs are free, but not where they are wanted",
        lambda jobs: jobs.wait_s("fragmentation").mean,
    ),
    Metric(
        "makespan_s",
        "s",
        "from the first submission to the last end",
        lambda jobs: jobs.makespan_s,
        column=Column("all s", formats.tenths_of_seconds, note="from the first submission to the last end"),
    ),
    Metric(
        "preemptions",
        "",
        "times that jobs were stopped",
        lambda jobs: float(jobs.preemptions),
        column=Column("stops", formats.whole, place=1, note="preemptions"),
    ),
    Metric(
        "migrations",
        "",
        "times that jobs moved to other GPUs",
        lambda jobs: float(sum(job.migrations for job in jobs.jobs)),
        column=Column("migrations", formats.whole, place=1, note="moves to other GPUs"),
    ),
    Metric("preempted_share", "", "preemptions / jobs that started", lambda jobs: jobs.preempted_share),
    Metric(
        "failed_attempts", "", "attempts that failed", lambda jobs: float(sum(job.failed_attempts for job in jobs.jobs))
    ),
    Metric("unsuccessful", "", "jobs that ended, but not `passed`", lambda jobs: float(len(jobs.unsuccessful))),
    Metric("unsuccessful_gpu_share", "0 to 1", "their share of the GPU time", lambda jobs: jobs.unsuccessful_gpu_share),
    Metric(
        "unfairness",
        "",
        "95th percentile of JCT / time that the job takes alone on GPUs that lie together (below 1 with more NICs)",
        lambda jobs: jobs.slowdown.percentile(95),
    ),
)

MANAGER: Final[tuple[Metric[ManagedRun], ...]] = (
    Metric(
        "allocated",
        "0 to 1",
        "GPU time that jobs held / that of all GPUs",
        lambda run: run.allocated,
        column=Column("held %", formats.percent, note="GPU time that jobs held, of that of all GPUs"),
    ),
    Metric(
        "hosts_per_job",
        "",
        "mean number of hosts per stint",
        lambda run: run.hosts_per_job,
        column=Column("hosts", formats.tenths, place=1, optional=3, note="per job, mean"),
    ),
    Metric("cross_tor_bytes", "bytes", "bytes that ToRs sent up", lambda run: run.cross_tor_bytes),
    Metric(
        "unfinished",
        "",
        "jobs that have not ended",
        lambda run: run.unfinished,
        column=Column("open", lambda names: str(len(names)), place=1, note="jobs that have not ended"),
    ),
    Metric("refused", "", "jobs that could never start, and why", lambda run: run.managed.refused),
    Metric(
        "partly_started",
        "",
        "jobs that held some of their GPUs at the end and waited for the rest: a deadlock, if no other job ran",
        lambda run: run.partly_started,
    ),
)


def outcome_metrics(jobs: Sequence[JobOutcome]) -> dict[str, float]:
    """Return the metrics of :data:`OUTCOMES` by name."""
    from testbed.metrics.managers.outcomes import Outcomes

    metrics: dict[str, Any] = entry_of(OUTCOMES, Outcomes(jobs))
    return metrics
