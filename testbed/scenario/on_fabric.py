"""What can only be wrong between a scenario and its fabric: jobs that do not fit, placements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from testbed.scenario.document import Location, Problem
from testbed.scenario.spec import JobEntry
from topologies.fabric import Fabric, Host

_INDEX: Final = r"\d{1,9}"
_RANGE: Final = rf"{_INDEX}(?:-{_INDEX})?"
_ITEM: Final = re.compile(rf"^(?P<host>h\d+)(?:g(?P<gpu>{_INDEX})|:(?P<list>{_RANGE}(?:,{_RANGE})*))?$", re.ASCII)


def expand(item: str, fabric: Fabric) -> tuple[str, ...]:
    """Return the GPU names that one placement item means, in the order written.

    Raises ``ValueError`` saying what was expected if it means none, or one twice.
    """
    match = _ITEM.match(re.sub(r"\s", "", item))
    if match is None:
        raise ValueError(f"'{item}' is no placement, expected a host (h0), GPUs of it (h1:0-3) or one GPU (h1g4)")
    host = fabric.hosts.get(match["host"])
    if host is None:
        raise ValueError(f"no host '{match['host']}' in the fabric, expected h0 to h{len(fabric.hosts) - 1}")
    if match["gpu"]:
        return (_gpu(host, int(match["gpu"])),)
    if not match["list"]:
        return host.gpus
    gpus = tuple(gpu for part in match["list"].split(",") for gpu in _range(host, part))
    if len(set(gpus)) < len(gpus):
        raise ValueError(f"'{item}' names a GPU twice, expected each once")
    return gpus


def gpus_of(job: JobEntry, fabric: Fabric) -> tuple[str, ...] | None:
    """Return the GPU names of an explicit placement, None without one; ``ValueError`` for one that is wrong."""
    if job.placement is None:
        return None
    return tuple(gpu for item in job.placement for gpu in expand(item, fabric))


def placement_problems(jobs: Mapping[int, JobEntry], fabric: Fabric) -> Iterator[Problem]:
    """Every placement that is wrong, and jobs that ask for more GPUs together than there are."""
    yield from _gpu_sum(jobs, fabric)
    yield from _placements(jobs, fabric)
    yield from _stragglers(jobs, fabric)


def size_problems(jobs: Mapping[int, JobEntry], fabric: Fabric) -> Iterator[Problem]:
    """Every job that no manager could place: it alone asks for more GPUs than there are."""
    have = len(fabric.gpus)
    for index, job in jobs.items():
        for key in ("gpus", "max_gpus"):
            asked = getattr(job, key)
            if asked is not None and asked > have:
                message = f"job '{job.name}' asks for {asked} GPUs on {have}, expected at most {have}"
                yield Problem(("jobs", index, key), message)


def _range(host: Host, part: str) -> tuple[str, ...]:
    first, _, last = part.partition("-")
    one, other = _gpu(host, int(first)), _gpu(host, int(last or first))
    start, end = host.gpus.index(one), host.gpus.index(other)
    if start > end:
        raise ValueError(f"range '{part}' runs backwards, expected {last}-{first}")
    return host.gpus[start : end + 1]


def _gpu(host: Host, index: int) -> str:
    if index >= len(host.gpus):
        raise ValueError(f"no GPU {index} on host {host.name}, expected 0 to {len(host.gpus) - 1}")
    return host.gpus[index]


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
            own = frozenset(gpus_of(job, fabric) or ())
        except ValueError:
            continue
        for number, straggler in enumerate(job.stragglers):
            location: Location = ("jobs", index, "stragglers", number, "gpu")
            if straggler.gpu not in fabric.host_of_gpu:
                yield Problem(location, f"no GPU '{straggler.gpu}' in the fabric, expected one like {fabric.gpus[0]}")
            elif own and straggler.gpu not in own:
                yield Problem(location, f"job '{job.name}' is not on GPU '{straggler.gpu}', expected one of its own")
