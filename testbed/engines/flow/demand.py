"""What a scheduler's run will send, over time, as the flow engine computes it before the run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from controller.schedulers import registry as schedulers
from testbed.engines.common.isolated_runs import each_alone, isolates_jobs
from testbed.engines.common.stop_condition import stop_condition_of
from testbed.engines.flow.cluster import FlowCluster
from testbed.experiment.demand import BIN_S, Demand, peak_demand
from testbed.experiment.experiment import UNSCALED, Experiment
from testbed.experiment.managed_footprint import stand_ins
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.results.record import LinkRow
from topologies.fabric import NETWORK_KINDS, Fabric
from workloads.job import Job
from workloads.managers import registry as managers

MOST_ITERATIONS: Final = 10
"""A run without a manager repeats itself: so many iterations of each job show its busiest second."""
PATIENCE_S: Final = 20.0
"""Seconds of CPU time for one scheduler; what comes later is not looked at."""


def demands_of(experiments: Sequence[Experiment]) -> tuple[Demand, ...]:
    """The demand of each scheduler's run. Code of other packages is not called: then all jobs send at once."""
    return tuple(demand for experiment in experiments for demand in _demands(experiment))


def _demands(experiment: Experiment) -> list[Demand]:
    managed, choice = experiment.managed, experiment.scheduler
    if managed and not managers.all_built_in(managed.queue, managed.policy, managed.placer, managed.capacity):
        return [peak_demand(experiment.fabric, stand_ins(managed, experiment.fabric))]
    if choice.name not in {each.name for each in schedulers.BUILT_IN}:
        experiment = replace(experiment, scheduler=SchedulerChoice("ecmp", label=choice.label))
    experiment = replace(
        experiment, jobs=tuple(map(synthetic, experiment.jobs)), scale=UNSCALED, sharing="max-min", network=None
    )
    return [_demand(part) for part in (each_alone(experiment) if isolates_jobs(experiment) else (experiment,))]


def synthetic(job: Job) -> Job:
    """The job itself; in place of a real program one that computes and sends what is declared of it."""
    return job if job.external is None else replace(job, external=None)


def _demand(experiment: Experiment) -> Demand:
    measure = experiment.measure
    fewer = min(measure.iterations, max(1, MOST_ITERATIONS - measure.warmup))
    experiment = replace(experiment, measure=replace(measure, iterations=fewer))
    cluster = FlowCluster(experiment)
    goal = stop_condition_of(experiment, cluster.jobs, cluster.managed, cluster.clock)

    def flush(_late: float) -> None:
        cluster.flush_links()
        cluster.at(cluster.now + BIN_S, flush)

    cluster.at(BIN_S, flush)
    cluster.step()  # the first one may compile the engine
    end = time.thread_time() + PATIENCE_S
    while goal.left() and cluster.now <= measure.time_limit_s and time.thread_time() < end:
        cluster.step()
    cluster.flush_links()
    return _of_rows(cluster.links, experiment.scheduler.label, experiment.fabric)


def _of_rows(rows: Sequence[LinkRow], scheduler: str, fabric: Fabric) -> Demand:
    bins = max((_bin(row.time_s) for row in rows), default=0) + 1
    sent, forwarded = [0.0] * bins, [0.0] * bins
    for row in rows:
        link = fabric.links[row.link]
        if link.kind in NETWORK_KINDS:
            (forwarded if link.source in fabric.switches else sent)[_bin(row.time_s)] += 8 * row.bytes
    return Demand(scheduler, tuple(sent), tuple(forwarded))


def _bin(end_s: float) -> int:
    return max(0, int((end_s - 1e-9) / BIN_S))
