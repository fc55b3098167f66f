"""Muri's grouping (Zhao et al., SIGCOMM 2022): which jobs get the same GPUs, by matching in several rounds.

Nothing here places a job. The network form, in which every GPU has one job, is :mod:`workloads.managers.placers.muri`.
Where the paper leaves an order open, it is that of the authors' simulator (github.com/Rivendile/Muri, commit 4e69a78).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from workloads.managers.placers.matching import Edge, maximum_weight_matching
from workloads.managers.policies.sharing.interleaving import Stages, best_order, efficiency_weight, worth_sharing

MOST_JOBS: Final = 4
"""Most jobs of a group, as in the paper."""


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
Key = Callable[[Sharer], float]


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


def group_jobs(
    jobs: Sequence[Sharer], gpus: int, key: Key, overheads: Stages = (), most_jobs: int = MOST_JOBS
) -> Grouping:
    """Return which jobs share GPUs, on ``gpus`` GPUs.

    A group has at most ``most_jobs`` jobs, one per resource, all of the same GPU count. The first jobs by ``key``
    (:func:`srsf`, :func:`least_attained`; ties in the order given) are admitted until the GPUs are full, each with the
    next ones of its size that could join it. Groups of equal size are matched for the largest sum of efficiencies and
    merged, round by round, until all fit. A group slower than its jobs in turn is undone (``overheads``:
    :func:`.interleaving.worth_sharing`). Groups run by their first job; what does not fit in the end waits.
    """
    most_jobs = max(1, min(most_jobs, max((len(job.stages) for job in jobs), default=1)))
    ordered = sorted(jobs, key=key)
    classes = _classes(_admitted(ordered, gpus, most_jobs))
    while _demand(classes) > gpus and (pairs := {size: _matched(classes[size], most_jobs) for size in classes}):
        if not any(pairs.values()):
            break
        classes = _merged(classes, pairs, gpus)
    groups = [part for same in classes.values() for group in same for part in _autopacked(group, overheads)]
    running = _fitting(sorted(groups, key=lambda group: min(map(key, group))), gpus)
    names = {job.name for group in running for job in group}
    return Grouping(tuple(running), tuple(job for job in ordered if job.name not in names))


Classes = dict[int, list[Group]]
"""GPUs of each job -> groups, in the order in which their sizes first appear."""


def _admitted(ordered: Sequence[Sharer], gpus: int, most_jobs: int) -> list[Sharer]:
    """The first jobs that fit alone, each with those behind it that may share its GPUs."""
    joins: dict[int, int] = {}
    admitted = []
    for job in ordered:
        if joins.get(job.gpus, 0) > 0:
            joins[job.gpus] -= 1
        elif job.gpus <= gpus:
            gpus -= job.gpus
            joins[job.gpus] = most_jobs - 1
        else:
            continue
        admitted.append(job)
    return admitted


def _classes(jobs: Sequence[Sharer]) -> Classes:
    classes: Classes = {}
    for job in jobs:
        classes.setdefault(job.gpus, []).append((job,))
    return classes


def _demand(classes: Classes) -> int:
    return sum(size * len(groups) for size, groups in classes.items())


def _matched(groups: Sequence[Group], most_jobs: int) -> list[Edge]:
    """Pairs of groups to merge, in the order of their later members."""
    weights = [[0] * len(groups) for _ in groups]
    for one, group in enumerate(groups):
        for other in range(one):
            weights[one][other] = weights[other][one] = _weight((*groups[other], *group), most_jobs)
    return sorted(maximum_weight_matching(weights), key=lambda pair: pair[1])


def _weight(group: Group, most_jobs: int) -> int:
    """Efficiency of a group as a weight; 0 for one that is too large, or has a job of which nothing is known."""
    if len(group) > most_jobs or not all(any(job.stages) for job in group):
        return 0
    return efficiency_weight([job.stages for job in group])


def _merged(classes: Classes, pairs: dict[int, list[Edge]], gpus: int) -> Classes:
    """Merge matched pairs as long as the groups do not fit; a merged group takes the place of its later part."""
    demand = _demand(classes)
    merged: Classes = {}
    for size, groups in classes.items():
        found: dict[int, Group] = dict(enumerate(groups))
        for one, other in pairs[size]:
            if demand > gpus:
                found[other] = _in_best_order((*found.pop(one), *found[other]))
                demand -= size
        merged[size] = list(found.values())
    return merged


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
