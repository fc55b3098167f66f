"""Muri's grouping of jobs that share GPUs (Zhao et al., SIGCOMM 2022), as functions of stage times.

A job's iteration uses ``k`` resources in turn, for the seconds in its ``stages``; jobs of a group run
staggered, each one resource ahead of the next. Nothing here places a job: the network form, in which
every GPU has one job, is :mod:`workloads.managers.placers.muri`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

from workloads.managers.placers.matching import maximum_weight_matching

Stages = tuple[float, ...]
_UNIT = 1_000_000_000
"""Efficiencies are weighed in parts of this, as matching needs whole numbers."""


@dataclass(frozen=True, slots=True)
class Sharer:
    """A job that may share its ``gpus`` GPUs; ``remaining_s`` and ``attained_s`` are seconds per GPU."""

    name: str
    gpus: int
    stages: Stages
    remaining_s: float = 0.0
    attained_s: float = 0.0


Group = tuple[Sharer, ...]
"""Jobs on the same GPUs, in the order of their offsets."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """``groups`` that run, and those ``waiting`` that there was no room for."""

    groups: tuple[Group, ...]
    waiting: tuple[Sharer, ...]


def srsf(job: Sharer) -> float:
    """Muri-S: the shortest remaining service first, in GPU-seconds."""
    return job.remaining_s * job.gpus


def least_attained(job: Sharer) -> float:
    """Muri-L: the least attained service first, in GPU-seconds."""
    return job.attained_s * job.gpus


def group_time(stages: Sequence[Stages]) -> float:
    """Return the seconds of an iteration of jobs in this order of offsets: sum over i of max over j of t_j[i - j].

    ``ValueError`` if there are more jobs than resources, or jobs do not name equally many.
    """
    resources = len(stages[0]) if stages else 0
    if any(len(job) != resources for job in stages):
        raise ValueError("jobs of a group must have a time for each of the same resources")
    if len(stages) > resources:
        raise ValueError(f"{len(stages)} jobs cannot be staggered over {resources} resources")
    return sum(max(job[(slot - offset) % resources] for offset, job in enumerate(stages)) for slot in range(resources))


def best_order(stages: Sequence[Stages]) -> tuple[int, ...]:
    """Return the order of offsets with the shortest group time; of equal ones the first as numbers."""
    orders = permutations(range(len(stages)))
    return min(orders, key=lambda order: group_time([stages[job] for job in order]))


def interleaving_efficiency(stages: Sequence[Stages]) -> float:
    """Return gamma: the mean use of the resources in the best order, 0 to 1; 0 where nothing takes time."""
    time_s = group_time([stages[job] for job in best_order(stages)])
    return sum(map(sum, stages)) / (len(stages[0]) * time_s) if time_s > 0 else 0.0


def efficiency_weight(stages: Sequence[Stages]) -> int:
    """Return gamma as a whole number, for a matching."""
    return round(_UNIT * interleaving_efficiency(stages))


def group_jobs(jobs: Sequence[Sharer], gpus: int, key: Callable[[Sharer], float], overheads: Stages = ()) -> Grouping:
    """Return which jobs share GPUs, on ``gpus`` GPUs.

    The first jobs by ``key`` (:func:`srsf`, :func:`least_attained`; ties in the order given) are admitted until
    the GPUs are full with as many jobs on each as there are resources. Groups of equal GPU counts are then
    matched for the largest sum of efficiencies and merged, round by round, until all fit. A group slower than
    its jobs in turn is undone (:func:`worth_sharing`). What does not fit in the end waits, the last admitted
    first. ``overheads`` are factors on the group time for 1, 2, .. jobs; none by default.
    """
    resources = max((len(job.stages) for job in jobs), default=1)
    ordered = sorted(jobs, key=key)
    groups: list[Group] = [(job,) for job in _admitted(ordered, gpus * resources)]
    while _demand(groups) > gpus and (pairs := _matched(groups, resources)):
        groups = _merged(groups, pairs, gpus)
    groups = [part for group in groups for part in _autopacked(group, overheads)]
    running = _fitting(groups, gpus)
    names = {job.name for group in running for job in group}
    return Grouping(tuple(running), tuple(job for job in ordered if job.name not in names))


def worth_sharing(stages: Sequence[Stages], overheads: Stages = ()) -> bool:
    """Whether the group's iteration takes no longer than those of its jobs in turn, overheads included."""
    together = group_time([stages[job] for job in best_order(stages)]) * _overhead(overheads, len(stages))
    return together <= sum(map(sum, stages)) * _overhead(overheads, 1)


def _overhead(overheads: Stages, jobs: int) -> float:
    return overheads[jobs - 1] if jobs <= len(overheads) else 1.0


def _admitted(ordered: Sequence[Sharer], room: int) -> list[Sharer]:
    admitted = []
    for job in ordered:
        if job.gpus <= room:
            admitted.append(job)
            room -= job.gpus
    return admitted


def _demand(groups: Sequence[Group]) -> int:
    return sum(group[0].gpus for group in groups)


def _matched(groups: Sequence[Group], resources: int) -> tuple[tuple[int, int], ...]:
    def weight(one: Group, other: Group) -> int:
        if one is other or one[0].gpus != other[0].gpus or len(one) + len(other) > resources:
            return 0
        return efficiency_weight([job.stages for job in (*one, *other)])

    return maximum_weight_matching([[weight(one, other) for other in groups] for one in groups])


def _merged(groups: Sequence[Group], pairs: Sequence[tuple[int, int]], gpus: int) -> list[Group]:
    """Merge matched pairs, in the order of the matching, as long as the groups do not fit."""
    merged: dict[int, Group] = dict(enumerate(groups))
    for one, other in pairs:
        if _demand(list(merged.values())) <= gpus:
            break
        merged[one] = _in_best_order((*merged[one], *merged.pop(other)))
    return list(merged.values())


def _in_best_order(group: Group) -> Group:
    return tuple(group[index] for index in best_order([job.stages for job in group]))


def _autopacked(group: Group, overheads: Stages) -> tuple[Group, ...]:
    if len(group) == 1 or worth_sharing([job.stages for job in group], overheads):
        return (group,)
    return tuple((job,) for job in group)


def _fitting(groups: Sequence[Group], gpus: int) -> list[Group]:
    running = []
    for group in groups:
        if group[0].gpus <= gpus:
            running.append(group)
            gpus -= group[0].gpus
    return running
