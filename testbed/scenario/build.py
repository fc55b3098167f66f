"""From a validated scenario to its jobs, placed and expanded."""

from __future__ import annotations

from pathlib import Path

from testbed.engines.common.managed_jobs import ManagedJobs
from testbed.errors import BadInputError
from testbed.experiment.experiment import Managed, Submission
from testbed.scenario.crosscheck import job_names
from testbed.scenario.external import external_command
from testbed.scenario.jobs.serving import serving_plan
from testbed.scenario.loading import Scenario
from testbed.scenario.managers import managed
from testbed.scenario.on_fabric import gpus_of
from testbed.scenario.spec import JobEntry
from testbed.scenario.training import schedule_of, training_plan
from topologies.fabric import Fabric
from topologies.reachability import flow_apart
from workloads import build as workloads_build
from workloads.communication.gradients import Gradients
from workloads.imported.errors import WorkloadFileError
from workloads.imported.expansion import PHASES
from workloads.imported.files import READERS
from workloads.imported.workload import ImportedWorkload
from workloads.job import Job, Straggler
from workloads.serving.plan import ServingPlan
from workloads.training.stages import StagedPlan


def build_jobs(scenario: Scenario, fabric: Fabric, seed: int | None = None) -> tuple[Job, ...]:
    """Place the jobs of ``scenario`` on ``fabric`` and expand their iterations; none if a manager places them.

    ``seed`` is the scenario's own unless given. Raises :class:`BadInputError` with the line of the
    job that cannot be built.
    """
    if scenario.manager is not None:
        return ()
    specs = [spec for job in scenario.jobs for spec in _specs(job, scenario, fabric)]
    try:
        jobs = workloads_build.build_jobs(
            specs, fabric, scenario.placement_policy, scenario.seed if seed is None else seed
        )
    except workloads_build.JobError as error:
        raise BadInputError(scenario.line_of_job(error.job, str(error))) from None
    for job in jobs:
        if (apart := flow_apart(((flow.source, flow.target) for flow in job.flows), fabric)) is not None:
            why = f"no path from port {apart[0]} to port {apart[1]}, expected GPUs whose NICs reach each other"
            raise BadInputError(scenario.line_of_job(job.name, f"job '{job.name}': {why}"))
    return jobs


def build_managed(scenario: Scenario, fabric: Fabric) -> Managed | None:
    """The jobs as they are submitted to the manager of ``scenario``; None if it has no manager.

    Raises :class:`BadInputError` with the line of the job or the manager that is wrong.
    """
    if scenario.manager is None:
        return None
    submissions = [
        Submission(spec, job.virtual_cluster, job.min_gpus, job.max_gpus, job.opportunistic, job.priority, job.gpu_type)
        for job in scenario.jobs
        for spec in _specs(job, scenario, fabric)
    ]
    try:
        found = managed(scenario.manager, submissions)
        ManagedJobs(found, fabric, scenario.seed)
    except workloads_build.JobError as error:
        raise BadInputError(scenario.line_of_job(error.job, str(error))) from None
    except ValueError as error:
        raise BadInputError(scenario.line_of(("manager",), str(error))) from None
    return found


def _specs(job: JobEntry, scenario: Scenario, fabric: Fabric) -> list[workloads_build.JobSpec]:
    gpus = gpus_of(job, fabric)
    plan = _plan(job, scenario, gpus)
    workload = None if plan else _workload(job, scenario, gpus)
    return [
        workloads_build.JobSpec(
            name=name,
            model=job.model if isinstance(job.model, str) else next(iter(job.model.files)),
            gpus=job.gpus,
            placement=gpus,
            share_gpus_with=job.share_gpus_with,
            start_s=job.start,
            iterations=job.iterations,
            compute_s=job.compute,
            communication_bytes=job.communication,
            overlap=job.overlap,
            flops=job.flops,
            collective=job.collective,
            jitter=job.jitter,
            stragglers=tuple(Straggler(entry.gpu, entry.factor) for entry in job.stragglers),
            gradients=Gradients() if job.gradients is None else job.gradients.value(),
            experts=None if job.experts is None else job.experts.value(),
            channels=scenario.channels if job.channels is None else job.channels,
            workload=workload,
            phases=PHASES if isinstance(job.model, str) else job.model.phases,
            external=external_command(job),
            plan=plan,
        )
        for name in job_names(job)
    ]


def _plan(job: JobEntry, scenario: Scenario, gpus: tuple[str, ...] | None) -> StagedPlan | ServingPlan | None:
    """The parallel layout of the job, its pools or its schedule; None for another kind of job."""
    try:
        count = (job.gpus or 0) if gpus is None else len(gpus)
        return schedule_of(job) or serving_plan(job) or training_plan(job, count)
    except (ValueError, WorkloadFileError) as error:
        raise BadInputError(scenario.line_of_job(job_names(job)[0], f"job '{job.name}': {error}")) from None


def _workload(job: JobEntry, scenario: Scenario, gpus: tuple[str, ...] | None) -> ImportedWorkload | None:
    """The iteration that the job's file holds; None for a model of the catalogue."""
    if isinstance(job.model, str):
        return None
    ((form, file),) = job.model.files.items()
    try:
        return READERS[form](Path(file), job.gpus if gpus is None else len(gpus), job.model.group)
    except WorkloadFileError as error:
        raise BadInputError(scenario.line_of_job(job_names(job)[0], f"job '{job.name}': {error}")) from None
