"""What Philly's guidelines against failures save (Jeon et al., ATC 2019, section 5): GPU hours, completion, queueing.

Every row plays the same jobs under the manager ``philly``, without a network. How each job ends is drawn by Philly's
shares and causes (:mod:`workloads.traces.failures.causes`); rows differ only in what is done about it. The cluster has
hosts such that the jobs as they are, with four retries, ask for :data:`LOAD` of it: our choice, fixed for all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Final

from testbed.metrics.managers.manager_metrics import outcome_metrics
from testbed.progress import Progress
from testbed.reproduce.managers.lyra_table import span_of, trace_of
from testbed.reproduce.managers.trace_cluster import GPUS_PER_HOST, cluster_of, too_large
from testbed.reproduce.paper_experiment import PaperRow, Settings
from topologies.fabric import Fabric
from workloads.managers.catalogue import named_manager
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.traces.failures.causes import (
    RETRIES,
    Failing,
    ended_early,
    failing,
    prerun_ends,
    with_known_inputs,
    with_prerun,
    without_repeats,
)
from workloads.traces.trace import Trace, TraceJob

LOAD: Final = 0.8
PRERUN_S: Final = 120.0
"""Seconds of start-up and first iteration on one GPU: assumed."""
POOL: Final = 4
"""GPUs for pre-runs in the rows with a pool of them."""
HOUR_S: Final = 3600.0
NOTHING: Final = 1.0
"""Seconds or hours up to this are too few to divide by."""
LOST_GPU_TIME: Final = 0.55
"""Published: killed and unsuccessful jobs have about 55 % of the GPU time."""
UNSUCCESSFUL: Final = 0.306
"""Share of the jobs that fail, which is an input of every row."""

Change = Callable[[Failing], Failing]


@dataclass(frozen=True, slots=True)
class Treatment:
    """What a row does: so many ``retries``, then ``changes`` to how each job ends; GPUs for pre-runs."""

    retries: int = RETRIES
    changes: tuple[Change, ...] = ()
    prerun_gpus: int = 1


def _prerun(fate: Failing) -> Failing:
    return with_prerun(fate, PRERUN_S)


TREATMENTS: Final[Mapping[str, Treatment]] = MappingProxyType(
    {
        "four retries": Treatment(),
        "no retries": Treatment(0),
        "pre-run on one GPU": Treatment(changes=(_prerun,)),
        "pre-run, four such GPUs": Treatment(changes=(_prerun,), prerun_gpus=POOL),
        "bad inputs blacklisted": Treatment(changes=(with_known_inputs,)),
        "no retries of what repeats": Treatment(changes=(without_repeats,)),
        "ended at 40 % of the epochs": Treatment(changes=(ended_early,)),
        "all of these": Treatment(changes=(_prerun, with_known_inputs, without_repeats, ended_early), prerun_gpus=POOL),
    }
)


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per treatment, and one per cause with its share of the failed attempts and of their GPU time."""
    trace = trace_of(settings)
    base = fates_of(trace.jobs, settings.seed, Treatment())
    hosts = hosts_for(trace, base)
    fabric = fabric_of(hosts)
    missing = too_large(trace.jobs, len(fabric.gpus))
    jobs = [job for job in trace.jobs if job.gpus <= len(fabric.gpus)]
    rows: list[PaperRow] = []
    first: dict[str, float] = {}
    for place, (label, treatment) in enumerate(TREATMENTS.items(), 1):
        progress.phase(f"{label}, {place} of {len(TREATMENTS)}")
        found = numbers(jobs, fates_of(jobs, settings.seed, treatment), fabric, treatment.prerun_gpus)
        first = first or found
        saved = {
            f"saved_{what}": 1 - found[what] / first[what]
            for what in ("gpu_hours", "jct_mean_s", "queue_mean_s")
            if first[what] > NOTHING
        }
        paper = {"lost_gpu_share": LOST_GPU_TIME, "unsuccessful_share": UNSUCCESSFUL} if len(rows) == 0 else {}
        fitted = ("unsuccessful_share",) if paper else ()
        basis = "shares of passed, killed and unsuccessful jobs: to Philly's" if paper else ""
        rows.append(
            PaperRow(label, paper, {**found, **saved}, missing if paper else "", fitted=fitted, calibrated_on=basis)
        )
    return [*rows, *_by_cause(jobs, base)]


def fates_of(jobs: Sequence[TraceJob], seed: int, treatment: Treatment) -> dict[str, Failing]:
    """Return how each job ends under a treatment."""
    found: dict[str, Failing] = {}
    for job in jobs:
        fate = failing(job.name, job.gpus, job.duration_s, seed, treatment.retries)
        for change in treatment.changes:
            fate = change(fate)
        found[job.name] = fate
    return found


def hosts_for(trace: Trace, fates: Mapping[str, Failing]) -> int:
    """Return the hosts of which these jobs ask for :data:`LOAD` while they are submitted."""
    gpu_s = sum(job.gpus * fates[job.name].ran_s for job in trace.jobs)
    return max(1, ceil(gpu_s / (LOAD * GPUS_PER_HOST * span_of(trace))))


def fabric_of(hosts: int) -> Fabric:
    """Return the cluster: hosts of 8 GPUs, two under each ToR."""
    even = hosts + hosts % 2
    return cluster_of(even, tors=even // 2)


def numbers(
    jobs: Sequence[TraceJob], fates: Mapping[str, Failing], fabric: Fabric, prerun_gpus: int
) -> dict[str, float]:
    """Return what one row shows."""
    tried = [(job.submit_s, fates[job.name].before_s) for job in jobs]
    ends = prerun_ends(tried, prerun_gpus) if any(seconds for _, seconds in tried) else [at for at, _ in tried]
    asking = [(job, at) for job, at in zip(jobs, ends, strict=True) if fates[job.name].attempts]
    waiting = [Waiting(job.name, job.gpus, at, fates[job.name].ran_s, model=job.model) for job, at in asking]
    attempts = {job.name: fates[job.name].attempts for job, _ in asking}
    outcomes = Play(named_manager("philly"), fabric, waiting, attempts=attempts).run()
    metrics = outcome_metrics(outcomes)
    delays = {job.name: at - job.submit_s for job, at in zip(jobs, ends, strict=True)}
    jct = {each.name: (each.jct_s or 0.0) + delays[each.name] for each in outcomes}
    jct |= {job.name: delays[job.name] for job in jobs if job.name not in jct}
    used = {each.name: each.allocated_gpu_s for each in outcomes}
    lost = sum(seconds for name, seconds in used.items() if fates[name].status != "passed")
    whole = sum(used.values())
    failed = sum(len(fates[job.name].failed_s) for job in jobs)
    return {
        **metrics,
        "gpu_hours": (whole + sum(seconds for _, seconds in tried)) / HOUR_S,
        "prerun_gpu_hours": sum(seconds for _, seconds in tried) / HOUR_S,
        "prerun_wait_mean_s": sum(delays.values()) / len(delays) if delays else 0.0,
        "jct_mean_s": sum(jct.values()) / len(jct) if jct else 0.0,
        "lost_gpu_share": lost / whole if whole else 0.0,
        "failed_attempts": float(failed),
        "unsuccessful_share": sum(fate.status == "unsuccessful" for fate in fates.values()) / max(1, len(fates)),
    }


def _by_cause(jobs: Sequence[TraceJob], fates: Mapping[str, Failing]) -> list[PaperRow]:
    """A row per cause, the most GPU time first."""
    trials: Counter[str] = Counter()
    gpu_s: dict[str, float] = {}
    times: dict[str, list[float]] = {}
    for job in jobs:
        for cause, seconds in fates[job.name].failures:
            trials[cause] += 1
            gpu_s[cause] = gpu_s.get(cause, 0.0) + job.gpus * seconds
            times.setdefault(cause, []).append(seconds)
    whole_s = sum(gpu_s.values()) or 1.0
    return [
        PaperRow(
            f"cause: {cause}",
            {},
            {
                "failed_attempts": float(trials[cause]),
                "failed_share": trials[cause] / trials.total(),
                "gpu_hours": seconds / HOUR_S,
                "failed_gpu_share": seconds / whole_s,
                "to_failure_p50_s": sorted(times[cause])[len(times[cause]) // 2],
            },
        )
        for cause, seconds in sorted(gpu_s.items(), key=lambda item: -item[1])
    ]
