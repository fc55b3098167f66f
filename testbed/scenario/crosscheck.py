"""What can only be wrong between parts of a scenario: jobs that do not fit the fabric, names used twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.metrics.checks import CheckError, parse_check, unknown_names
from testbed.scenario.document import Location, Problem
from testbed.scenario.fabrics import FabricSection, build_fabric
from testbed.scenario.failures import failure_problems
from testbed.scenario.placement import expand
from testbed.scenario.spec import FailureSpec, JobEntry
from topologies.fabric import Fabric


@dataclass(frozen=True)
class Parts:
    """The parts of a scenario that are right by themselves, items of lists by their position.

    ``complete`` says that all jobs and all schedulers are among them, ``managed`` that there is a manager.
    """

    fabric: FabricSection | None
    jobs: Mapping[int, JobEntry]
    schedulers: Mapping[int, str]
    checks: Mapping[int, str]
    failures: Mapping[int, FailureSpec]
    complete: bool
    managed: bool = False


def cross_problems(parts: Parts) -> list[Problem]:
    """Return every problem between the parts."""
    problems = [*_one_job_each(parts.jobs), *_repeated(parts.schedulers, "schedulers"), *_repeated_jobs(parts.jobs)]
    problems += _managed(parts.jobs) if parts.managed else _not_managed(parts.jobs)
    if parts.complete:
        problems += _checks(parts)
    if parts.fabric is not None:
        try:
            fabric = build_fabric(parts.fabric)
        except ValueError as error:
            key = str(error).split(" ", 1)[0]
            problems.append(Problem(("fabric", key), f"impossible fabric: {error}"))
        else:
            problems += failure_problems(parts.failures, fabric)
            problems += _too_large(parts.jobs, fabric) if parts.managed else _where_placed(parts.jobs, fabric)
    return problems


def job_names(job: JobEntry) -> tuple[str, ...]:
    """Return the names of the jobs that one entry makes."""
    return (job.name,) if job.count == 1 else tuple(f"{job.name}-{number}" for number in range(job.count))


def gpus_of(job: JobEntry, fabric: Fabric) -> tuple[str, ...] | None:
    """Return the GPU names of an explicit placement, None without one; ``ValueError`` for one that is wrong."""
    if job.placement is None:
        return None
    return tuple(gpu for item in job.placement for gpu in expand(item, fabric))


def _one_job_each(jobs: Mapping[int, JobEntry]) -> Iterator[Problem]:
    for index, job in jobs.items():
        if job.gpus is None and job.placement is None and job.packed_with is None:
            yield Problem(("jobs", index), f"job '{job.name}' has no GPUs, expected gpus or placement")
        if job.gpus is not None and job.placement is not None:
            yield Problem(("jobs", index, "placement"), f"job '{job.name}' has both, expected gpus or placement")
        if job.count > 1 and job.placement is not None:
            message = f"job '{job.name}' has a placement and count {job.count}, expected one of them"
            yield Problem(("jobs", index, "count"), message)
        yield from _packed(index, job, jobs)


def _packed(index: int, job: JobEntry, jobs: Mapping[int, JobEntry]) -> Iterator[Problem]:
    """A job that shares GPUs has none of its own, and shares those of one that has."""
    if job.packed_with is None:
        return
    location: Location = ("jobs", index, "packed_with")
    own = next((key for key in ("gpus", "placement") if getattr(job, key) is not None), None)
    if own is not None or job.count > 1:
        yield Problem(location, f"job '{job.name}' has packed_with and {own or 'count'}, expected one of them")
    owners = [name for other in jobs.values() if other.packed_with is None for name in job_names(other)]
    if job.packed_with not in owners:
        message = f"job '{job.name}' is packed with '{job.packed_with}', expected a job that has GPUs of its own"
        yield Problem(location, message)


def _managed(jobs: Mapping[int, JobEntry]) -> Iterator[Problem]:
    """A manager says which GPUs a job gets."""
    for index, job in jobs.items():
        for key in ("placement", "packed_with", "stragglers"):
            if getattr(job, key):
                message = f"job '{job.name}' has {key}, expected none where a manager places it"
                yield Problem(("jobs", index, key), message)
        least, most = job.least_gpus or job.gpus, job.most_gpus or job.gpus
        if job.gpus is not None and least is not None and most is not None and not least <= job.gpus <= most:
            message = f"job '{job.name}' asks for {job.gpus} GPUs, expected least_gpus <= gpus <= most_gpus"
            yield Problem(("jobs", index, "gpus"), message)


def _not_managed(jobs: Mapping[int, JobEntry]) -> Iterator[Problem]:
    for index, job in jobs.items():
        for key in ("virtual_cluster", "least_gpus", "most_gpus", "opportunistic"):
            if getattr(job, key):
                message = f"job '{job.name}' has {key}, expected a key 'manager' beside jobs"
                yield Problem(("jobs", index, key), message)


def _too_large(jobs: Mapping[int, JobEntry], fabric: Fabric) -> Iterator[Problem]:
    have = len(fabric.gpus)
    for index, job in jobs.items():
        for key in ("gpus", "most_gpus"):
            asked = getattr(job, key)
            if asked is not None and asked > have:
                message = f"job '{job.name}' asks for {asked} GPUs on {have}, expected at most {have}"
                yield Problem(("jobs", index, key), message)


def _where_placed(jobs: Mapping[int, JobEntry], fabric: Fabric) -> Iterator[Problem]:
    yield from _gpu_sum(jobs, fabric)
    yield from _placements(jobs, fabric)
    yield from _stragglers(jobs, fabric)


def _repeated(names: Mapping[int, str], key: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, name in names.items():
        if name in seen:
            yield Problem((key, index), f"'{name}' is in {key} twice, expected each once")
        seen.add(name)


def _repeated_jobs(jobs: Mapping[int, JobEntry]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, job in jobs.items():
        for name in job_names(job):
            if name in seen:
                yield Problem(("jobs", index, "name"), f"two jobs are named '{name}', expected a name for each")
            seen.add(name)


def _gpu_sum(jobs: Mapping[int, JobEntry], fabric: Fabric) -> Iterator[Problem]:
    """The first job that no longer fits, with the sum of all, as a count: ``97 GPUs on 96``."""
    have, needs = len(fabric.gpus), {index: _size(job, fabric) for index, job in jobs.items()}
    total = sum(needs.values())
    running = 0
    for index, need in needs.items():
        running += need
        if running > have:
            key = "gpus" if jobs[index].gpus is not None else "placement"
            message = f"the jobs ask for {total} GPUs on {have}, expected at most {have} together"
            yield Problem(("jobs", index, key), message)
            return


def _size(job: JobEntry, fabric: Fabric) -> int:
    if job.gpus is not None:
        return job.gpus * job.count
    try:
        return len(set(gpus_of(job, fabric) or ()))
    except ValueError:
        return 0


def _placements(jobs: Mapping[int, JobEntry], fabric: Fabric) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for index, job in jobs.items():
        for number, item in enumerate(job.placement or ()):
            location: Location = ("jobs", index, "placement", number)
            try:
                gpus = expand(item, fabric)
            except ValueError as error:
                yield Problem(location, f"job '{job.name}': {error}")
                continue
            clash = next((gpu for gpu in gpus if gpu in taken), None)
            if clash is not None:
                owner = taken[clash]
                yield Problem(location, f"job '{job.name}': GPU {clash} belongs to job '{owner}', expected a free one")
            taken.update(dict.fromkeys(gpus, job.name))


def _stragglers(jobs: Mapping[int, JobEntry], fabric: Fabric) -> Iterator[Problem]:
    for index, job in jobs.items():
        try:
            own = gpus_of(job, fabric)
        except ValueError:
            continue
        for number, straggler in enumerate(job.stragglers):
            location: Location = ("jobs", index, "stragglers", number, "gpu")
            if straggler.gpu not in fabric.host_of_gpu:
                yield Problem(location, f"no GPU '{straggler.gpu}' in the fabric, expected one like {fabric.gpus[0]}")
            elif own is not None and straggler.gpu not in own:
                yield Problem(location, f"job '{job.name}' is not on GPU '{straggler.gpu}', expected one of its own")


def _checks(parts: Parts) -> Iterator[Problem]:
    schedulers: Sequence[str] = tuple(parts.schedulers.values())
    jobs = [name for job in parts.jobs.values() for name in job_names(job)]
    for index, text in parts.checks.items():
        try:
            check = parse_check(text)
        except CheckError:
            continue
        for line in unknown_names(check, schedulers, jobs):
            yield Problem(("checks", index), line)
