"""Lyra's simulated cluster: hosts that train, hosts of inference that may be lent, the jobs, and how full it is.

No network: a job runs as long as the trace says on as many V100s as it asks for. Written down before anything was
measured:

* training hosts have 8 V100s, inference hosts 8 T4s, 520 of these for 443 of those (from memory of the paper). A T4 has
  0.52 of a V100's speed (FP32 peaks of the data sheets: 8.1 and 15.7 TFLOP/s);
* inference uses 40 % of its hosts on average (published) and 15 to 65 % over the day; every 5 minutes Lyra may have
  what it leaves free, but 5 % of the hosts;
* 5 % of the jobs are elastic, with 36 % of the GPU time (published): from half to twice the GPUs that they ask for;
* 21 % of the jobs, the elastic ones among them, may run on T4s (from memory of the paper: "fungible"); the others need
  V100s. Where all GPUs of a job are of one type, it is as fast as they are;
* a preempted job loses 63 s (from memory), a job that changes its size 30 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor
from random import Random
from typing import Any, Final

from testbed.reproduce.managers.trace_cluster import GPUS_PER_HOST, cluster_of
from topologies.fabric import Fabric
from workloads.managers.account import JobOutcome
from workloads.managers.capacities.gpu_types import USUAL_TYPE, GpuTypes, gpu_types
from workloads.managers.capacities.inference import InferenceLoad
from workloads.managers.cluster_state import ClusterState
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.managers.manager import Manager
from workloads.managers.registry import manager
from workloads.traces.synthetic import with_elastic_jobs
from workloads.traces.trace import Trace

INFERENCE_PER_TRAINING: Final = 520 / 443
LENT_TYPE: Final = "T4"
RESTART_S, RESIZE_S = 63.0, 30.0
FUNGIBLE: Final = 0.21
"""Share of the jobs that may run on inference GPUs; from memory of the paper."""
EVERY_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Variant:
    """A row: with ``loans``, with elastic jobs, and with jobs on several GPU types at once.

    ``mixed_efficiency``: the share of the sum of its GPUs' speeds that such a job reaches; None: no job can.
    ``everything``: every job is elastic and may run on any type. ``on_loan_first``: elastic jobs prefer hosts on loan.
    """

    lyra: bool = True
    loans: bool = True
    elastic: bool = True
    everything: bool = False
    mixed_efficiency: float | None = None
    speed: float | None = None
    """Of a T4, in place of the data sheets'."""
    on_loan_first: bool = True


@dataclass(frozen=True)
class Cluster:
    """``training`` hosts, and those of inference behind them."""

    training: int
    fabric: Fabric

    @property
    def lent(self) -> tuple[str, ...]:
        """The hosts of inference."""
        return tuple(self.fabric.hosts)[self.training :]


@dataclass
class Usage:
    """GPU-seconds over the span of the trace: held on training hosts and on lent ones, and lent."""

    training_hosts: int
    span_s: float
    training_s: float = 0.0
    lent_held_s: float = 0.0
    lent_s: float = 0.0

    def passes(self, from_s: float, to_s: float, state: ClusterState) -> None:
        """Add what is held between two times."""
        seconds = min(to_s, self.span_s) - min(from_s, self.span_s)
        if seconds > 0.0:
            own = state.structure.gpus_of_host[: self.training_hosts] - state.free_by_host[: self.training_hosts]
            held, present = int(own.sum()), state.present_gpus
            own_gpus = self.training_hosts * GPUS_PER_HOST
            self.training_s += seconds * held
            self.lent_held_s += seconds * (present - state.free_gpus - held)
            self.lent_s += seconds * (present - own_gpus)

    def shares(self, cluster: Cluster) -> dict[str, float]:
        """Usage of training GPUs, of all GPUs (with inference's own), and of those on loan."""
        own = self.training_hosts * GPUS_PER_HOST * self.span_s
        others = len(cluster.lent) * GPUS_PER_HOST * self.span_s
        inference = others * mean_load(cluster, self.span_s)
        found = {
            "usage_training": self.training_s / own,
            "usage_overall": (self.training_s + self.lent_held_s + inference) / (own + others),
        }
        return found | ({"usage_on_loan": self.lent_held_s / self.lent_s} if self.lent_s else {})


def mean_load(cluster: Cluster, span_s: float) -> float:
    """Mean share of its hosts that inference uses over the span."""
    load = InferenceLoad(hosts=cluster.lent, every_s=EVERY_S)
    times = [EVERY_S * number for number in range(max(1, floor(span_s / EVERY_S)))]
    return sum(map(load.load_at, times)) / len(times)


def cluster(training: int) -> Cluster:
    """Return ``training`` hosts, and those of inference in proportion; ``BadInputError`` for too many."""
    inference = round(INFERENCE_PER_TRAINING * training)
    fabric = cluster_of(training + inference, tors=1)
    return Cluster(training, fabric)


def play(
    trace: Trace, variant: Variant, where: Cluster, span_s: float, seed: int
) -> tuple[tuple[JobOutcome, ...], dict[str, float]]:
    """Return the outcome of every job under ``variant``, and the usage of GPUs."""
    usage = Usage(where.training, span_s)
    jobs = jobs_of(trace, variant, where.training * GPUS_PER_HOST, seed)
    made = Play(manager_of(variant, where), where.fabric, jobs, gpu_types=types_of(variant, where))
    return made.run(usage.passes), usage.shares(where)


def types_of(variant: Variant, where: Cluster) -> GpuTypes:
    """Return the GPU types of a row."""
    speeds = {} if variant.speed is None else {"speeds": {LENT_TYPE: variant.speed}}
    return gpu_types({LENT_TYPE: where.lent}, mixed_efficiency=variant.mixed_efficiency, **speeds)


def manager_of(variant: Variant, where: Cluster) -> Manager:
    """Return the manager of a row; without loans the inference hosts are never available."""
    options: dict[Any, dict[str, object]] = {"capacity": {"hosts": where.lent, "every_s": EVERY_S}}
    if not variant.lyra:
        return manager("consolidated", policy="gang", capacity="inference", options=options)
    options["policy"] = {
        "loan_hosts": where.lent if variant.loans else (),
        "restart_s": RESTART_S,
        "resize_s": RESIZE_S,
        "elastic": variant.elastic,
        "on_loan_first": variant.on_loan_first,
    }
    options["placer"] = {"on_loan_first": variant.on_loan_first}
    return manager("elastic-groups", policy="lyra", capacity="inference", options=options)


def jobs_of(trace: Trace, variant: Variant, most: int, seed: int) -> tuple[Waiting, ...]:
    """Return the jobs of at most ``most`` GPUs; which are elastic, and which may run on T4s, is drawn by ``seed``."""
    kept = replace(trace, jobs=tuple(job for job in trace.jobs if job.gpus <= most))
    jobs = with_elastic_jobs(kept, seed, most=most).jobs
    anywhere = _fungible([job.elastic for job in jobs], seed)
    found = []
    for job, fungible in zip(jobs, anywhere, strict=True):
        least, largest = (max(1, job.gpus // 2), min(most, 2 * job.gpus)) if variant.everything else (None, None)
        found.append(
            Waiting(
                job.name,
                job.gpus,
                job.submit_s,
                job.duration_s,
                remaining_s=job.duration_s,
                model=job.model,
                min_gpus=least or job.min_gpus,
                max_gpus=largest or job.max_gpus,
                gpu_type="" if not variant.lyra or fungible or variant.everything else USUAL_TYPE,
            )
        )
    return tuple(found)


def _fungible(elastic: Sequence[bool], seed: int) -> list[bool]:
    """The elastic jobs, and others until :data:`FUNGIBLE` of all may run on any type."""
    others = [number for number, is_elastic in enumerate(elastic) if not is_elastic]
    Random(f"fungible {seed}").shuffle(others)
    more = set(others[: max(0, round(FUNGIBLE * len(elastic)) - sum(elastic))])
    return [is_elastic or number in more for number, is_elastic in enumerate(elastic)]
