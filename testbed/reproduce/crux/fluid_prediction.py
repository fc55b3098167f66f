"""The fluid model's prediction of a run: a check of the order of magnitude, in a second instead of minutes.

Every job is one fluid (:mod:`testbed.fluid.periodic`): all its connections advance together, at the pace of the most
crowded link of any of them. Undisturbed rings do not finish earlier, so contention lasts longer than with packets.
No jitter, no packets; levels and paths are the scheduler's.
"""

from __future__ import annotations

from collections.abc import Mapping

from controller.decision import Decision
from testbed.dry_run import final_decision
from testbed.engines.common.isolated_runs import isolates_jobs
from testbed.experiment.experiment import Experiment
from testbed.fluid.periodic import simulate
from testbed.metrics.job_metrics import level_of
from topologies.fabric import Fabric
from workloads.analysis import bytes_by_link, isolated
from workloads.job import Job
from workloads.periodic_job import PeriodicJob


def predict(experiment: Experiment) -> dict[str, float]:
    """Return job -> GPU utilisation, under the decision in force once all jobs have arrived.

    Raises ``ValueError`` for a job of several phases.
    """
    decision = final_decision(experiment)
    jobs = experiment.jobs
    if isolates_jobs(experiment):
        # A run chooses paths for each job by itself, here all jobs are present: either way its flows do not collide.
        return {job.name: isolated(job, experiment.fabric, decision.paths).utilization for job in jobs}
    fluids = [fluid(job, experiment.fabric, decision) for job in jobs]
    levels = [level if (level := level_of(job, decision, experiment.levels)) is not None else 0 for job in jobs]
    outcome = simulate(fluids, levels)
    return {job.name: busy / outcome.horizon_s for job, busy in zip(jobs, outcome.busy_s, strict=True)}


def fluid(job: Job, fabric: Fabric, decision: Decision) -> PeriodicJob[str]:
    """Return ``job`` on its decided paths; ``ValueError`` unless it has one phase."""
    if len(job.phases) != 1:
        raise ValueError(f"job {job.name} has {len(job.phases)} phases, the fluid model takes one")
    total = bytes_by_link(((flow.id, flow.bytes) for flow in job.flows), decision.paths)
    loads = {link: 8 * size / fabric.links[link].capacity for link, size in total.items()}
    lead = (1 - job.phases[0].overlap) * job.compute_s
    return PeriodicJob(job.compute_s, lead, loads, len(job.gpus))


def overall(utilizations: Mapping[str, float], gpus: Mapping[str, int]) -> float:
    """The mean of the jobs' utilisations, weighted by their GPUs, as in the paper's bars."""
    return sum(gpus[name] * value for name, value in utilizations.items()) / sum(gpus[name] for name in utilizations)
