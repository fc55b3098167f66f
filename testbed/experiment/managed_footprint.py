"""What jobs will load the network with, wherever a manager puts them: for the choice of a scale. Pure."""

from __future__ import annotations

from dataclasses import replace

from testbed.experiment.experiment import Managed, Measure
from topologies.fabric import Fabric
from workloads.build import build_job
from workloads.connections import PortBook
from workloads.job import Job


def stand_ins(managed: Managed, fabric: Fabric) -> tuple[Job, ...]:
    """Return each job on GPUs that lie together, one after the other around the fabric: they may overlap.

    Elastic jobs have the most GPUs that they may get, which makes their messages smallest.
    """
    found, ports, first = [], PortBook(0, fabric), 0
    per_host = max(1, len(fabric.gpus) // len(fabric.hosts))
    for submission in managed.submissions:
        size = min(submission.max_gpus or submission.gpus, len(fabric.gpus))
        if size > per_host - first % per_host:  # it would straddle hosts that it can have whole
            first = -(-first // per_host) * per_host % len(fabric.gpus)
        around = [*fabric.gpus[first:], *fabric.gpus[:first]][:size]
        gpus = [gpu for gpu in fabric.gpus if gpu in set(around)]
        found.append(build_job(submission.spec, gpus, fabric, ports))
        first = (first + size) % len(fabric.gpus)
    return tuple(found)


def measure_all(measure: Measure, managed: Managed) -> Measure:
    """Every iteration of every job counts: a job that is stopped and goes on has no warm-up to be left out."""
    return replace(measure, warmup=0, iterations=max(each.spec.iterations for each in managed.submissions))
