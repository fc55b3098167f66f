"""Lyra's table on a two-week trace with an inference load. No network: a job runs as long as the trace says.

Chosen here, before any measurement: 176 hosts of 8 GPUs train, and in the paper's proportion (520 to 443, from
memory) 207 hosts serve inference, whose load is that of the ``inference`` capacity. Jobs are those of the synthetic
trace, all with GPUs and submitted as drawn. Elastic jobs are drawn until they have 36 % of the GPU time (published);
they take from half to twice the GPUs that they request. In "Ideal" every job is elastic and stopping costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from types import MappingProxyType
from typing import Any, Final

from testbed.metrics.manager_metrics import outcome_metrics
from testbed.progress import Progress
from testbed.reproduce.paper_experiment import PaperRow, Settings
from topologies.clos import clos
from topologies.fabric import Fabric
from workloads.managers.account import JobOutcome
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.managers.manager import Manager
from workloads.managers.registry import manager
from workloads.traces.registry import read_trace
from workloads.traces.synthetic import lingjun_like
from workloads.traces.trace import Trace, window

TRAINING: Final = 176
INFERENCE: Final = 207
GPUS_PER_HOST: Final = 8
GPUS, JOBS, DAYS = 2000, 5000, 14.0
"""Of the synthetic trace."""
NOTHING_S: Final = 1.0
"""Means up to this are too short to divide by."""
ELASTIC_SHARE: Final = 0.36
"""Of the GPU time: published as 36 % of training resources, 5 % of jobs."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A row: with ``loans``, with elastic jobs (a share of the GPU time), and what stopping a job costs."""

    policy: str
    loans: bool = False
    elastic_share: float = 0.0
    restart_s: float = 63.0


VARIANTS: Final = MappingProxyType(
    {
        "Baseline": Variant("gang"),
        "loans only": Variant("lyra", loans=True),
        "elastic jobs only": Variant("lyra", elastic_share=ELASTIC_SHARE),
        "Basic": Variant("lyra", loans=True, elastic_share=ELASTIC_SHARE),
        "Ideal": Variant("lyra", loans=True, elastic_share=1.0, restart_s=0.0),
    }
)
PAPER: Final = MappingProxyType(
    {
        "Baseline": {"jct_times": 1.0, "queue_times": 1.0},
        "Basic": {"jct_times": 16610 / 11236, "queue_times": 3072 / 2010},
        "Advanced": {"jct_times": 16610 / 10434, "queue_times": 3072 / 1835},
        "Ideal": {"jct_times": 16610 / 8891, "queue_times": 3072 / 1157},
    }
)


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return the rows, means of the jobs that ended. "Advanced" needs GPUs of several speeds: not used here."""
    trace = _trace(settings)
    rows: list[PaperRow] = []
    base: dict[str, float] = {}
    for place, (label, variant) in enumerate(VARIANTS.items(), 1):
        progress.phase(f"{label}, {place} of {len(VARIANTS)}")
        found = outcome_metrics(play(trace, variant, settings.seed))
        base = base or found
        means = {what: found[f"{what}_mean_s"] for what in ("jct", "queue")}
        times = {f"{w}_times": base[f"{w}_mean_s"] / mean for w, mean in means.items() if mean > NOTHING_S}
        rows.append(PaperRow(label, PAPER.get(label, {}), {**times, **found}, ""))
    rows.insert(-1, PaperRow("Advanced", PAPER["Advanced"], {}, "GPUs of several speeds are not used in this table"))
    return rows


def _trace(settings: Settings) -> Trace:
    if settings.trace is not None:
        whole = read_trace(settings.trace)
    else:
        whole = lingjun_like(settings.seed, GPUS, JOBS, DAYS, gpu_share=1.0, keep_peaks=False)
    return window(whole, 0.0, settings.days * 86400.0)


def play(trace: Trace, variant: Variant, seed: int) -> tuple[JobOutcome, ...]:
    """Return the outcome of every job under ``variant``."""
    fabric = cluster()
    jobs = jobs_of(trace, variant.elastic_share, seed)
    return Play(manager_of(variant, fabric), fabric, jobs).run()


def cluster() -> Fabric:
    """Return all hosts, inference hosts last."""
    return clos(
        hosts=TRAINING + INFERENCE,
        gpus_per_host=GPUS_PER_HOST,
        nics_per_host=4,
        tors=1,
        aggregations=1,
        port_rate=100e9,
        fabric_rate=100e9,
    )


def manager_of(variant: Variant, fabric: Fabric) -> Manager:
    """Return the manager of a row; without loans the inference hosts are never available."""
    lent = list(fabric.hosts)[TRAINING:]
    options: dict[Any, dict[str, object]] = {"capacity": {"hosts": lent}}
    if variant.policy == "lyra":
        loans = lent if variant.loans else []
        options["policy"] = {"loan_hosts": loans, "restart_s": variant.restart_s}
    return manager("consolidated", policy=variant.policy, capacity="inference", options=options)


def jobs_of(trace: Trace, elastic_share: float, seed: int) -> tuple[Waiting, ...]:
    """Return the jobs; those drawn as elastic take from half to twice the GPUs that they request."""
    most = TRAINING * GPUS_PER_HOST
    jobs = [
        Waiting(job.name, job.gpus, job.submit_s, job.duration_s, remaining_s=job.duration_s, model=job.model)
        for job in trace.jobs
        if job.gpus <= most
    ]
    order = list(range(len(jobs)))
    Random(f"elastic {seed}").shuffle(order)
    wanted = elastic_share * sum(job.gpus * (job.duration_s or 0.0) for job in jobs)
    for number in order:
        job = jobs[number]
        if wanted > 0:
            jobs[number] = replace(job, min_gpus=max(1, job.gpus // 2), max_gpus=min(most, 2 * job.gpus))
            wanted -= job.gpus * (job.duration_s or 0.0)
    return tuple(jobs)
