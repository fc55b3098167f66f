"""Every metric of a run, its jobs and its comparison, once: key, unit, meaning, value, check, column. Pure.

The order here is the order in ``summary.json``. A metric that is added here appears there, may be named in checks, is a
column of the tables and of the report where it has one, and is in docs/reference/results.md after
``python -m testbed.metrics.documentation --write docs/reference/results.md docs/reference/checks.md``. Those of
cluster managers are in :mod:`testbed.metrics.managers.manager_metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from testbed.experiment.network_model import COUNTED, PER_FLOW
from testbed.metrics import formats
from testbed.metrics.metric import Column, Entry, Metric, change, entry_of, gain
from testbed.metrics.network.message_catalogue import messages
from testbed.metrics.network.spread_metrics import SPREAD
from testbed.metrics.outage_metrics import OUTAGES
from testbed.metrics.serving.request_catalogue import REQUESTS

if TYPE_CHECKING:  # they import numpy, and tables need only keys and formats
    from testbed.metrics.measured import MeasuredJob, MeasuredRun

_FLOPS: Final = "FLOP/s"
_SHARE: Final = "0 to 1"
POINTS_NOTE: Final = "difference to the first scheduler, in percentage points"
JCT_CHANGE_NOTE: Final = "change of the JCT against the first scheduler"
LEVEL_NOTE: Final = "priority, 0 is served first; - where none is needed"
BASELINE: Final = "baseline_gpu_utilization"
"""Utilisation under the first scheduler of the same run, beside what a comparison says about another."""
IDLE_CAUSES: Final = {
    "exposed": "idle: communication not hidden by compute",
    "straggler": "idle: a peer is late",
    "start": "idle: not begun, shifted, or a shared GPU computes for another job",
}
"""Why an allocated GPU is idle -> its meaning."""


def _shown_points(entry: Entry) -> str:
    """The points of a run beside its utilisation; the difference itself where the baseline's is not there."""
    if BASELINE not in entry:
        return formats.points(entry["gpu_utilization_points"])
    return formats.points_between(entry[BASELINE], entry["gpu_utilization"])


WORK: Final = Column(
    "TFLOP per GPU-second",
    lambda flop_per_s: f"{flop_per_s / 1e12:.1f}",
    place=3,
    share_of="allocated_gpu_s",
    optional=5,
    note="work_flop / allocated_gpu_s",
)
"""Work by the GPU time that jobs were allocated: in tables, on the page and in files the same."""


def _of(part: str, key: str) -> Callable[[MeasuredJob], object]:
    return lambda job: getattr(job, part).get(key)


JOB: Final[tuple[Metric[MeasuredJob], ...]] = (
    Metric("name", "", "the job", lambda job: job.name),
    Metric("model", "", "what it trains", lambda job: job.metrics.job.model),
    Metric(
        "gpus", "", "GPUs it has", lambda job: len(job.metrics.job.gpus), check=True, column=Column("GPUs", optional=4)
    ),
    Metric(
        "level",
        "",
        "priority level, 0 is served first; the highest of its flows' where they differ; null if it needs none (below)",
        lambda job: job.level,
        check=True,
        column=Column("level", note=LEVEL_NOTE),
    ),
    Metric(
        "intensity",
        _FLOPS,
        "as recorded by the scheduler; null where it uses none",
        lambda job: job.intensity,
        check=True,
    ),
    Metric(
        "iterations",
        "",
        "whole iterations in the window, disturbed ones excluded",
        lambda job: job.metrics.iterations,
        check=True,
        column=Column("iter", mark=lambda job: f" (+{job['disturbed']})" if job.get("disturbed") else "", optional=2),
    ),
    Metric(
        "iteration_s.mean",
        "s",
        "mean iteration time in the window; the time of an iteration is its mean over the job's GPUs",
        lambda job: job.metrics.times and job.metrics.times.mean,
        check=True,
        column=Column("mean s", formats.seconds),
    ),
    Metric(
        "iteration_s.p50",
        "s",
        "median iteration time",
        lambda job: job.metrics.times and job.metrics.times.p50,
        check=True,
        column=Column("p50 s", formats.seconds, optional=1),
    ),
    Metric(
        "iteration_s.p99",
        "s",
        "99th percentile of the iteration time",
        lambda job: job.metrics.times and job.metrics.times.p99,
        check=True,
        column=Column("p99 s", formats.seconds, optional=3),
    ),
    Metric(
        "gpu_utilization",
        _SHARE,
        "time its GPUs computed / time they were allocated, in the window",
        lambda job: job.metrics.utilization,
        check=True,
        column=Column("util %", formats.percent),
    ),
    Metric("gpu_idle_s.exposed", "s", IDLE_CAUSES["exposed"], lambda job: job.metrics.idle_s["exposed"], check=True),
    Metric(
        "gpu_idle_s.straggler", "s", IDLE_CAUSES["straggler"], lambda job: job.metrics.idle_s["straggler"], check=True
    ),
    Metric("gpu_idle_s.start", "s", IDLE_CAUSES["start"], lambda job: job.metrics.idle_s["start"], check=True),
    Metric(
        "jct_s",
        "s",
        "from arrival to the end of the last declared iteration",
        lambda job: job.metrics.jct_s,
        check=True,
        column=Column(
            "JCT s",
            lambda value: formats.seconds(value, 1),
            mark=lambda job: "*" if job["jct_source"] == "measured" else "",  # the job ended, nothing is projected
        ),
    ),
    Metric(
        "jct_source",
        "",
        "`measured`, or `projected`: time it waited to begin + declared iterations x mean iteration time",
        lambda job: job.metrics.jct_source,
        check=True,
    ),
    *messages(column=True),
    *REQUESTS,
    *(Metric(f"network.{key}", unit, what, _of("packets", key), check=True) for key, unit, what in PER_FLOW),
    *(Metric(f"outages.{key}", unit, what, _of("outages", key), check=True) for key, unit, what in OUTAGES),
    Metric(
        "disturbed",
        "",
        "iterations excluded, on all GPUs of the job and with their time, because something outside the run took the "
        "CPU, or with `--discard-disturbed` because of any fault limited in time",
        lambda job: job.metrics.disturbed,
    ),
    Metric("allocated_gpu_s", "s", "busy + idle GPU time", lambda job: job.metrics.allocated_s),
    Metric(
        "work_flop",
        "FLOP",
        "FLOPs done in the window",
        lambda job: job.metrics.work_flop,
        column=replace(WORK, place=0),
    ),
    Metric(
        "profile", "", "`declared` or `measured`: the profile the scheduler used; else null", lambda job: job.profile
    ),
    Metric("stints", "", "spans on fixed GPUs, each in the files under its name", lambda job: job.stints, managed=True),
    Metric(
        "alone_s",
        "s",
        "iteration time alone by formula: `ideal` on no shared link, `decided_paths` on its paths; null where unknown",
        lambda job: job.alone and {"ideal": job.alone.ideal_s, "decided_paths": job.alone.decided_s},
    ),
    Metric(
        "loss",
        "s, points",
        "why its GPUs are idle: `alone`, `own`, `others`, each as `_gpu_s` and `_points` (below); null where unknown",
        lambda job: job.loss,
    ),
    Metric("preemptions", "", "times it was stopped", lambda job: job.placed.preemptions, managed=True),
    Metric("migrations", "", "times it moved to other GPUs", lambda job: job.placed.migrations, managed=True),
    Metric("status", "", "`passed`, `killed` or `unsuccessful`", lambda job: job.placed.status, managed=True),
    Metric("attempts", "", "attempts, failed ones included", lambda job: job.placed.attempts, managed=True),
    Metric(
        "queue_s",
        "s",
        "time before the start and while preempted; null if it has not ended",
        lambda job: job.queue_s,
        managed=True,
    ),
    Metric(
        "compute_source",
        "",
        "where compute times of a large model come from; empty where the scenario gives them",
        lambda job: job.metrics.job.compute_source,
    ),
)


def _counted(key: str) -> Callable[[MeasuredRun], object]:
    return lambda run: cast(Mapping[str, object], run.record.environment.get("network", {})).get(key)


RUN: Final[tuple[Metric[MeasuredRun], ...]] = (
    Metric("scheduler", "", "the scheduler: its label in the scenario", lambda run: run.record.scheduler),
    Metric(
        "gpu_utilization",
        _SHARE,
        "busy / allocated GPU time of all jobs; that of shared GPUs counts once",
        lambda run: run.gpu_utilization,
        check=True,
        column=Column("GPU util %", formats.percent),
    ),
    Metric(
        "work_flop",
        "FLOP",
        "FLOPs done in the window",
        lambda run: run.work_flop,
        check=True,
        column=WORK,
    ),
    Metric("duration_s", "s", "length of the run", lambda run: run.record.duration_s, check=True),
    Metric("jobs", "", "an entry per job", lambda run: [entry_of(JOB, job, managed=run.managed) for job in run.jobs]),
    Metric(
        "fidelity.verdict",
        "",
        "`ok`, `degraded` or `invalid` ([how it is judged](../explanation/verdict.md))",
        lambda run: run.record.fidelity.verdict,
        check=True,
    ),
    Metric("fidelity.reasons", "", "why it is not `ok`", lambda run: run.record.fidelity.reasons),
    Metric(
        "fidelity.min_idle_cpu",
        _SHARE,
        "idle share of the CPU in the busiest second",
        lambda run: run.record.fidelity.min_idle_cpu,
        check=True,
    ),
    Metric(
        "fidelity.max_timer_lateness_s",
        "s",
        "how late the latest compute pause ended",
        lambda run: run.record.fidelity.max_timer_lateness_s,
        check=True,
    ),
    Metric(
        "fidelity.link_rate_error",
        _SHARE,
        "largest error of a busy link's rate",
        lambda run: run.record.fidelity.link_rate_error,
        check=True,
    ),
    Metric(
        "fidelity.unintended_drops",
        "",
        "packets dropped, in queues and elsewhere",
        lambda run: run.record.fidelity.unintended_drops,
        check=True,
    ),
    Metric(
        "fidelity.findings",
        "",
        "every violation: `kind`, `from_s` and `to_s` (seconds of the run), `what`, the "
        "`links` concerned; `discarded` if it only cost the iterations that it touched",
        lambda run: run.record.fidelity.findings,
    ),
    Metric(
        "fidelity.lower_level_share",
        _SHARE,
        "largest share of a link that lower levels got while a higher one waited",
        lambda run: run.record.fidelity.lower_level_share,
    ),
    Metric(
        "fidelity.machine_caused",
        "",
        "whether the machine, not the run's own load, caused the verdict",
        lambda run: run.record.fidelity.machine_caused,
    ),
    Metric(
        "fidelity.max_run_delay",
        _SHARE,
        "largest share of its time that a process waited for a CPU",
        lambda run: run.record.fidelity.max_run_delay,
    ),
    Metric(
        "fidelity.retransmits",
        "",
        "TCP segments that were retransmitted",
        lambda run: run.record.fidelity.retransmits,
        check=True,
    ),
    Metric(
        "fidelity.stolen_cpu",
        _SHARE,
        "mean share of the CPU that other guests took",
        lambda run: run.record.fidelity.stolen_cpu,
        check=True,
    ),
    Metric(
        "gpu_idle_s.exposed",
        "s",
        IDLE_CAUSES["exposed"],
        lambda run: run.idle_s["exposed"],
        check=True,
        column=Column("exposed %", formats.percent, place=2, share_of="allocated_gpu_s", note=IDLE_CAUSES["exposed"]),
    ),
    Metric(
        "gpu_idle_s.straggler",
        "s",
        IDLE_CAUSES["straggler"],
        lambda run: run.idle_s["straggler"],
        check=True,
        column=Column(
            "straggler %",
            formats.percent,
            place=2,
            share_of="allocated_gpu_s",
            optional=3,
            note=IDLE_CAUSES["straggler"],
        ),
    ),
    Metric(
        "gpu_idle_s.start",
        "s",
        IDLE_CAUSES["start"],
        lambda run: run.idle_s["start"],
        check=True,
        column=Column(
            "start %", formats.percent, place=2, share_of="allocated_gpu_s", optional=2, note=IDLE_CAUSES["start"]
        ),
    ),
    Metric("allocated_gpu_s", "s", "busy + idle GPU time", lambda run: run.allocated_s),
    Metric("loss", "s, points", "the same of all jobs, points weighted by GPU time", lambda run: run.loss),
    *messages(column=False),
    Metric("changes.decisions", "", "decisions of the run", lambda run: len(run.record.decisions)),
    Metric(
        "changes.levels",
        "",
        "levels that one decision after another changed, of jobs or flows that run under both",
        lambda run: sum(row.levels_changed for row in run.record.decisions),
        check=True,
    ),
    Metric(
        "changes.paths",
        "",
        "paths of flows that one decision after another changed",
        lambda run: sum(row.paths_changed for row in run.record.decisions),
        check=True,
    ),
    *(Metric(f"network.{key}", unit, what, _counted(key), check=True) for key, unit, what in COUNTED),
    *SPREAD,
    Metric("manager", "", "metrics of the manager, below", lambda run: run.manager, managed=True),
    Metric(
        "scheduler_name", "", "its name; the label is the same if it has no other", lambda run: run.record.choice.name
    ),
    Metric("options", "", "its options in the scenario", lambda run: run.record.choice.options),
    Metric("load_balancing", "", "its own load balancing, null without", lambda run: run.record.choice.load_balancing),
)

COMPARISON: Final[tuple[Metric[tuple[Entry, Entry]], ...]] = (
    Metric(
        "gpu_utilization_points",
        "points",
        "difference in GPU utilisation, in percentage points",
        lambda both: 100 * (both[1]["gpu_utilization"] - both[0]["gpu_utilization"]),
        column=Column("points", place=1, whole=_shown_points, note=POINTS_NOTE),
    ),
    Metric(
        "jct_change",
        "",
        "relative change of JCT by job (`-0.18`: 18 % shorter)",
        lambda both: change(both[0]["jct_s"], both[1]["jct_s"]),
        column=Column("+- %", formats.change, note=JCT_CHANGE_NOTE),
        by_job=True,
    ),
    Metric("gain_split.run", "points", "loss under the baseline minus this loss", lambda both: _gain(both)),
    Metric("gain_split.jobs", "points", "the same by job", lambda both: _gain(both), by_job=True),
)
"""Of a scheduler's run and the baseline's: values of the two entries, the baseline's first."""


def check_names(metrics: Iterable[Metric[Any]]) -> tuple[str, ...]:
    """The keys that checks may name."""
    return tuple(metric.key for metric in metrics if metric.check)


def _gain(both: tuple[Entry, Entry]) -> dict[str, float] | None:
    return gain(both[0]["loss"], both[1]["loss"])
