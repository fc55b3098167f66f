"""What can only be wrong between parts of a scenario: names used twice, keys that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.metrics.checks import CheckError, parse_check, unknown_names
from testbed.scenario.document import Location, Problem
from testbed.scenario.external import external_problems
from testbed.scenario.jobs.serving import serving_problems
from testbed.scenario.network.fabrics import FabricSection, build_fabric
from testbed.scenario.network.failures import FailureSpec, failure_problems
from testbed.scenario.on_fabric import placement_problems, size_problems
from testbed.scenario.spec import JobEntry
from testbed.scenario.training import training_problems
from topologies.fabric import Fabric
from topologies.limits import CHECKS, FAILURES, JOBS, PLACEMENTS


@dataclass(frozen=True)
class Parts:
    """The parts of a scenario that are right by themselves, items of lists by their position.

    ``complete`` says that all jobs and all schedulers are among them, ``managed`` that there is a manager,
    ``dilated`` that the scale says so.
    """

    fabric: FabricSection | None
    jobs: Mapping[int, JobEntry]
    schedulers: Mapping[int, SchedulerChoice]
    checks: Mapping[int, str]
    failures: Mapping[int, FailureSpec]
    time_limit_s: float
    complete: bool
    managed: bool = False
    dilated: bool = False


def cross_problems(parts: Parts) -> list[Problem]:
    """Return every problem between the parts."""
    total = sum(job.count for job in parts.jobs.values())
    if total > JOBS or len(parts.checks) > CHECKS or len(parts.failures) > FAILURES:
        # What follows would take long; the other two are refused by the model.
        return [Problem(("jobs",), f"there are {total} jobs, expected at most {JOBS}")] if total > JOBS else []
    problems = [*_one_job_each(parts.jobs), *_labels(parts), *_repeated_jobs(parts.jobs)]
    problems += _managed(parts.jobs) if parts.managed else _not_managed(parts.jobs)
    problems += training_problems(parts.jobs, managed=parts.managed)
    problems += serving_problems(parts.jobs, managed=parts.managed, failing=bool(parts.failures))
    problems += external_problems(parts.jobs, managed=parts.managed, dilated=parts.dilated)
    if parts.complete:
        problems += _checks(parts)
    built: Fabric | None = None
    if parts.fabric is not None:
        try:
            fabric = build_fabric(parts.fabric)
        except ValueError as error:
            key = str(error).split(" ", 1)[0]
            problems.append(Problem(("fabric", key), f"impossible fabric: {error}"))
        else:
            if total * len(fabric.gpus) > PLACEMENTS:
                asked = f"{total} jobs on {len(fabric.gpus)} GPUs"
                return [Problem(("jobs",), f"there are {asked}, expected at most {PLACEMENTS} jobs x GPUs")]
            built = fabric
            problems += size_problems(parts.jobs, fabric) if parts.managed else placement_problems(parts.jobs, fabric)
    return [*problems, *failure_problems(parts.failures, built, parts.time_limit_s)]


def job_names(job: JobEntry) -> tuple[str, ...]:
    """Return the names of the jobs that one entry makes."""
    return (job.name,) if job.count == 1 else tuple(f"{job.name}-{number}" for number in range(job.count))


def _one_job_each(jobs: Mapping[int, JobEntry]) -> Iterator[Problem]:
    owners = {name for job in jobs.values() if job.share_gpus_with is None for name in job_names(job)}
    for index, job in jobs.items():
        if job.gpus is None and job.placement is None and job.share_gpus_with is None:
            yield Problem(("jobs", index), f"job '{job.name}' has no GPUs, expected gpus or placement")
        if job.gpus is not None and job.placement is not None:
            yield Problem(("jobs", index, "placement"), f"job '{job.name}' has both, expected gpus or placement")
        if job.count > 1 and job.placement is not None:
            message = f"job '{job.name}' has a placement and count {job.count}, expected one of them"
            yield Problem(("jobs", index, "count"), message)
        yield from _packed(index, job, owners)


def _packed(index: int, job: JobEntry, owners: Set[str]) -> Iterator[Problem]:
    """A job that shares GPUs has none of its own, and shares those of one of the ``owners``."""
    if job.share_gpus_with is None:
        return
    location: Location = ("jobs", index, "share_gpus_with")
    own = next((key for key in ("gpus", "placement") if getattr(job, key) is not None), None)
    if own is not None or job.count > 1:
        yield Problem(location, f"job '{job.name}' has share_gpus_with and {own or 'count'}, expected one of them")
    if job.share_gpus_with not in owners:
        message = f"job '{job.name}' is packed with '{job.share_gpus_with}', expected a job that has GPUs of its own"
        yield Problem(location, message)


def _managed(jobs: Mapping[int, JobEntry]) -> Iterator[Problem]:
    """A manager says which GPUs a job gets."""
    for index, job in jobs.items():
        for key in ("placement", "share_gpus_with", "stragglers"):
            if getattr(job, key):
                message = f"job '{job.name}' has {key}, expected none where a manager places it"
                yield Problem(("jobs", index, key), message)
        least, most = job.min_gpus or job.gpus, job.max_gpus or job.gpus
        if job.gpus is not None and least is not None and most is not None and not least <= job.gpus <= most:
            message = f"job '{job.name}' asks for {job.gpus} GPUs, expected min_gpus <= gpus <= max_gpus"
            yield Problem(("jobs", index, "gpus"), message)


def _not_managed(jobs: Mapping[int, JobEntry]) -> Iterator[Problem]:
    for index, job in jobs.items():
        for key in ("virtual_cluster", "min_gpus", "max_gpus", "opportunistic", "priority", "gpu_type"):
            if getattr(job, key):
                message = f"job '{job.name}' has {key}, expected a key 'manager' beside jobs"
                yield Problem(("jobs", index, key), message)


def _labels(parts: Parts) -> Iterator[Problem]:
    """Every scheduler has a label of its own, and none that it was given is a job's name: checks use both."""
    jobs = {name for job in parts.jobs.values() for name in job_names(job)}
    seen: set[str] = set()
    for index, choice in parts.schedulers.items():
        if choice.label in seen:
            expected = f"expected each once, or under a label: {{name: {choice.name}, label: NAME}}"
            yield Problem(("schedulers", index), f"'{choice.label}' is in schedulers twice, {expected}")
        elif choice.label != choice.name and choice.label in jobs:
            message = f"label '{choice.label}' is the name of a job, expected a name that is free"
            yield Problem(("schedulers", index, "label"), message)
        seen.add(choice.label)


def _repeated_jobs(jobs: Mapping[int, JobEntry]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, job in jobs.items():
        for name in job_names(job):
            if name in seen:
                yield Problem(("jobs", index, "name"), f"two jobs are named '{name}', expected a name for each")
            seen.add(name)


def _checks(parts: Parts) -> Iterator[Problem]:
    schedulers = [choice.label for choice in parts.schedulers.values()]
    jobs = [name for job in parts.jobs.values() for name in job_names(job)]
    for index, text in parts.checks.items():
        try:
            check = parse_check(text)
        except CheckError:
            continue
        for line in unknown_names(check, schedulers, jobs):
            yield Problem(("checks", index), line)
