"""From a validated scenario to its jobs, placed and expanded."""

from __future__ import annotations

from testbed.errors import BadInputError
from testbed.scenario.crosscheck import gpus_of, job_names
from testbed.scenario.loading import Scenario
from testbed.scenario.spec import JobSpec
from topologies.fabric import Fabric
from workloads import build as workloads_build
from workloads.job import Job, Straggler


def build_jobs(scenario: Scenario, fabric: Fabric, seed: int | None = None) -> tuple[Job, ...]:
    """Place the jobs of ``scenario`` on ``fabric`` and expand their iterations.

    ``seed`` is the scenario's own unless given. Raises :class:`BadInputError` with the line of the
    job that cannot be built.
    """
    specs = [spec for job in scenario.jobs for spec in _specs(job, fabric)]
    try:
        jobs = workloads_build.build_jobs(specs, fabric, scenario.place, scenario.seed if seed is None else seed)
    except workloads_build.JobError as error:
        raise BadInputError(scenario.line_of_job(error.job, str(error))) from None
    return jobs


def _specs(job: JobSpec, fabric: Fabric) -> list[workloads_build.JobSpec]:
    return [
        workloads_build.JobSpec(
            name=name,
            model=job.model,
            gpus=job.gpus,
            placement=gpus_of(job, fabric),
            start_s=job.start,
            iterations=job.iterations,
            compute_s=job.compute,
            communication_bytes=job.communication,
            overlap=job.overlap,
            flops=job.flops,
            collective=job.collective,
            jitter=job.jitter,
            stragglers=tuple(Straggler(entry.gpu, entry.factor) for entry in job.stragglers),
        )
        for name in job_names(job)
    ]
