"""What an iteration of a job uses in turn (Muri, SIGCOMM 2022, section 2), and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from workloads.managers.cluster_state import ClusterState
from workloads.managers.jobs import Running, Waiting
from workloads.managers.policies.sharing.interleaving import Stages, interleaved_speeds


def _of_the_network(job: Waiting) -> float | None:
    return job.communication_s if job.compute_s > 0 or job.communication_s > 0 else None


def _of_the_gpus(job: Waiting) -> float | None:
    return job.compute_s if job.compute_s > 0 or job.communication_s > 0 else None


_TIMES: Final[Mapping[str, Callable[[Waiting], float | None]]] = {
    "storage": lambda job: job.storage_s,
    "preprocessing": lambda job: job.preprocessing_s,
    "compute": _of_the_gpus,
    "network": _of_the_network,
}
RESOURCES: Final = tuple(_TIMES)
"""In the order in which an iteration uses them: it reads its input, prepares it on CPUs, computes, and communicates."""


def stages_of(job: Waiting, resources: Sequence[str] = RESOURCES) -> Stages:
    """Return the seconds of an iteration on each of ``resources``; 0 on those of which there is no profile."""
    return tuple(_TIMES[name](job) or 0.0 for name in resources)


def used_resources(jobs: Sequence[Waiting], resources: Sequence[str] = RESOURCES) -> tuple[str, ...]:
    """Return those of ``resources`` that at least one of ``jobs`` has a profile of."""
    return tuple(name for name in resources if any(_TIMES[name](job) is not None for job in jobs))


def unprofiled(jobs: Sequence[Waiting], resources: Sequence[str] = RESOURCES) -> str:
    """Return in words the resources of which a job has no profile, with the jobs if others have one; empty for none."""
    found = []
    for name in resources:
        without = [job.name for job in jobs if _TIMES[name](job) is None]
        if without:
            found.append(name if len(without) == len(jobs) else f"{name} ({', '.join(without)})")
    return ", ".join(found)


def shared_speed(running: Running, state: ClusterState) -> float:
    """Return how fast a job is beside those that it shares GPUs with, as a share of its speed alone there.

    They interleave their resources (:func:`.interleaving.interleaved_speeds`); if nothing is known of one, all have an
    even part.
    """
    if not running.share_gpus_with:
        return 1.0
    members = (running, *(state.running[name] for name in running.share_gpus_with))
    speeds = interleaved_speeds([stages_of(each.job) for each in members])
    return speeds[0] if speeds else 1 / len(members)
