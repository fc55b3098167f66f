"""Lyra's table (EuroSys 2023, simulation): Baseline, Basic, Advanced and Ideal, on a trace, without a network.

The cluster and its jobs are :mod:`.lyra_cluster`'s; its size is fitted to the Baseline's usage alone
(:mod:`.lyra_load`). What each row may do was written down before the first of them was played:

* **Baseline**: first come first served with backfill, consolidated; no loans, no job changes its size.
* **Basic**: Lyra's loans, reclaiming and allocation. A job has GPUs of one type.
* **Advanced**: as Basic, and a job that may run on T4s may have V100s and T4s at once; it then reaches 70 % of the sum
  of its GPUs' speeds (from memory of the paper).
* **Ideal**: as Advanced, and *every* job is elastic (from half to twice what it asks for), may run on T4s, and
  reaches the whole sum of its GPUs' speeds. It knows what Lyra knows in the other rows, the seconds that are left
  of each job, and nothing of jobs to come or of inference's load to come. Preemption and changes of size cost what they
  cost elsewhere.

Rows without numbers of the paper take Basic apart: loans alone, elastic jobs alone, and what the slower GPUs cost.

Usage counts GPU time that jobs hold, over the days in which jobs are submitted; in "overall" inference's own
hosts count too. Preempted: preemptions over jobs that started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Final

from testbed.metrics.managers.manager_metrics import outcome_metrics
from testbed.progress import Progress
from testbed.reproduce.kept_replays import first_days
from testbed.reproduce.managers.lyra_cluster import Cluster, Variant, cluster, jobs_of, play
from testbed.reproduce.managers.lyra_load import BASELINE_USAGE, fitted_hosts
from testbed.reproduce.managers.trace_cluster import GPUS_PER_HOST, too_large
from testbed.reproduce.paper_experiment import PaperRow, Settings
from workloads.managers.jobs import Waiting
from workloads.traces.registry import read_trace
from workloads.traces.synthetic import lingjun_like
from workloads.traces.trace import Trace

A_PRIORI_HOSTS: Final = 176
"""The training hosts that were chosen before anything was fitted."""
GPUS, JOBS = 2000, 5000
"""Of the synthetic trace."""
NOTHING_S: Final = 1.0
"""Times up to this are too short to divide by."""

BASELINE: Final = Variant(lyra=False, loans=False, elastic=False)
VARIANTS: Final = MappingProxyType(
    {
        "Baseline": BASELINE,
        "loans only": Variant(elastic=False),
        "elastic jobs only": Variant(loans=False),
        "Basic": Variant(),
        "Advanced": Variant(mixed_efficiency=0.7),
        "Ideal": Variant(everything=True, mixed_efficiency=1.0),
        "Basic, elastic jobs on the cluster's own hosts first": Variant(on_loan_first=False),
        "Basic, T4s as fast as V100s": Variant(speed=1.0),
    }
)
TIMES: Final = MappingProxyType(
    {
        f"{what}_{measure}_times": f"{what}_{measure}_s"
        for what in ("jct", "queue")
        for measure in ("mean", "p50", "p95")
    }
)
"""Key of a factor against the Baseline -> key of the seconds."""


def _paper(jct: Sequence[float], queue: Sequence[float], usage: Sequence[float], preempted: float) -> dict[str, float]:
    seconds = dict(zip(TIMES.values(), (*jct, *queue), strict=True))
    return {**seconds, "usage_training": usage[0], "usage_overall": usage[1], "preempted_share": preempted}


PAPER_ROWS: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "Baseline": _paper((16610, 791, 82933), (3072, 55, 8357), (0.72, 0.52), 0.0),
        "Basic": _paper((11236, 568, 56477), (2010, 26, 3358), (0.86, 0.65), 0.1224),
        "Advanced": _paper((10434, 525, 56553), (1835, 24, 3238), (0.86, 0.68), 0.0735),
        "Ideal": _paper((8891, 422, 41146), (1157, 22, 3204), (0.93, 0.72), 0.0572),
    }
)
COMPARED: Final = (*TIMES, "usage_training", "usage_overall", "preempted_share")
"""The table's columns."""


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return the rows; those beside the paper's have ``a_priori`` numbers, on the cluster chosen beforehand."""
    trace = trace_of(settings)
    span_s = span_of(trace)
    progress.phase("fitting the number of hosts to the Baseline's usage")
    fitted = fit(trace, span_s, settings.seed)
    missing = too_large(trace.jobs, fitted.training * GPUS_PER_HOST)
    found: dict[str, dict[str, float]] = {}
    before: dict[str, dict[str, float]] = {}
    for place, (label, variant) in enumerate(VARIANTS.items(), 1):
        progress.phase(f"{label}, {place} of {len(VARIANTS)}")
        found[label] = numbers(trace, variant, fitted, span_s, settings.seed)
        if label in PAPER_ROWS and settings.trace is None:
            before[label] = numbers(trace, variant, cluster(A_PRIORI_HOSTS), span_s, settings.seed)
    found, before = with_factors(found), with_factors(before)
    paper = with_factors(PAPER_ROWS)
    notes = {"Baseline": missing} | _notes(
        found, elastic_run_share(jobs_of(trace, Variant(), fitted.training * GPUS_PER_HOST, settings.seed))
    )
    basis = f"hosts that train ({fitted.training}): to the Baseline's usage of training GPUs, {BASELINE_USAGE}"
    return [
        PaperRow(
            label,
            paper.get(label, {}),
            here,
            notes.get(label, ""),
            fitted=("usage_training",) if label == "Baseline" else (),
            calibrated_on=basis,
            a_priori=before.get(label, {}),
        )
        for label, here in found.items()
    ]


def trace_of(settings: Settings) -> Trace:
    """Return the trace: the user's, or a synthetic one, its first days."""
    if settings.trace is not None:
        whole = read_trace(settings.trace)
    else:
        whole = lingjun_like(settings.seed, GPUS, JOBS, gpu_share=1.0, keep_peaks=False)
    return first_days(whole, settings.days, "" if settings.trace is None else str(settings.trace))


def span_of(trace: Trace) -> float:
    """Seconds in which jobs are submitted, at least a second."""
    return max(1.0, max((job.submit_s for job in trace.jobs), default=0.0))


def fit(trace: Trace, span_s: float, seed: int) -> Cluster:
    """Return the cluster on which the Baseline's usage is the paper's."""

    def usage(hosts: int) -> float:
        return play(trace, BASELINE, cluster(hosts), span_s, seed)[1]["usage_training"]

    gpu_s = sum(job.gpu_seconds for job in trace.jobs)
    return cluster(fitted_hosts(usage, gpu_s, span_s, GPUS_PER_HOST))


def numbers(trace: Trace, variant: Variant, where: Cluster, span_s: float, seed: int) -> dict[str, float]:
    """Return the metrics of one row."""
    outcomes, usage = play(trace, variant, where, span_s, seed)
    return {**outcome_metrics(outcomes), **usage, "training_hosts": float(where.training)}


def with_factors(rows: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the rows with each time against the Baseline's: larger is better."""
    if not rows:
        return {}
    base = rows["Baseline"]
    return {
        label: {
            **row,
            **{times: base[seconds] / row[seconds] for times, seconds in TIMES.items() if row[seconds] > NOTHING_S},
        }
        for label, row in rows.items()
    }


def in_order(rows: Mapping[str, Mapping[str, float]], key: str) -> bool:
    """Whether a column has the order of the paper's rows; equal numbers of the paper may be in any order.

    A row without a factor has next to no such time: it comes last, and two of them are in no order.
    """
    order = list(PAPER_ROWS)
    paper = with_factors(PAPER_ROWS)
    pairs = [(one, other) for place, one in enumerate(order) for other in order[place + 1 :]]
    return all(
        (paper[one][key] - paper[other][key]) * (rows[one].get(key, inf) - rows[other].get(key, inf)) > 0
        for one, other in pairs
        if paper[one][key] != paper[other][key]
    )


def elastic_run_share(jobs: Sequence[Waiting]) -> float:
    """Return the elastic jobs' share of all jobs' run times on the GPUs that they ask for."""
    elastic_s = sum(job.duration_s or 0.0 for job in jobs if (job.max_gpus or job.gpus) > job.gpus)
    return elastic_s / sum(job.duration_s or 0.0 for job in jobs)


def least_elastic_share(row: Mapping[str, float], baseline: Mapping[str, float]) -> float:
    """Return the least share of the Baseline's run times that elastic jobs can have had, by a row's mean times.

    A job's run time is its completion time less its queueing. Only elastic jobs run faster than in the Baseline, twice
    as fast at most.
    """
    run_s, before_s = (each["jct_mean_s"] - each["queue_mean_s"] for each in (row, baseline))
    return 2.0 * (1.0 - run_s / before_s)


def _notes(found: Mapping[str, Mapping[str, float]], elastic: float) -> dict[str, str]:
    """Label -> what is to be said of a row; ``elastic``: the elastic jobs' share of run times."""
    basic, baseline = PAPER_ROWS["Basic"], PAPER_ROWS["Baseline"]
    out = [key for key in COMPARED if not in_order(found, key)]
    order = f"{len(COMPARED) - len(out)} of {len(COMPARED)} columns are in the paper's order"
    return {
        "Basic": f"by the paper's means elastic jobs have at least {least_elastic_share(basic, baseline):.0%} of the "
        f"run time; here, with the published shares of jobs and of GPU time, they have {elastic:.0%}",
        list(PAPER_ROWS)[-1]: order + (f"; not: {', '.join(out)}" if out else ""),
    }
