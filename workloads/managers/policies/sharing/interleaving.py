"""Muri's interleaving (Zhao et al., SIGCOMM 2022): how well jobs share GPUs, as functions of stage times.

A job's iteration uses ``k`` resources in turn (storage, CPUs, GPUs, network), for the seconds in its ``stages``; jobs
of a group run staggered, each one resource ahead of the next. Which jobs form groups is
:mod:`workloads.managers.policies.sharing.grouping`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Final

Stages = tuple[float, ...]
_UNIT: Final = 1_000_000_000
"""Efficiencies are weighed in parts of this, as matching needs whole numbers."""
_KEPT: Final = 1 << 16


def group_time(stages: Sequence[Stages]) -> float:
    """Return the seconds of an iteration of jobs in this order of offsets: sum over i of max over j of t_j[i - j].

    ``ValueError`` if there are more jobs than resources, or jobs do not name equally many.
    """
    resources = len(stages[0]) if stages else 0
    if any(len(job) != resources for job in stages):
        raise ValueError("jobs of a group must have a time for each of the same resources")
    if len(stages) > resources:
        raise ValueError(f"{len(stages)} jobs cannot be staggered over {resources} resources")
    if len(stages) < 2:
        return sum(map(sum, stages))
    delayed = (job[resources - offset :] + job[: resources - offset] for offset, job in enumerate(stages))
    return float(sum(map(max, *delayed)))


def best_order(stages: Sequence[Stages]) -> tuple[int, ...]:
    """Return the order of offsets with the shortest group time; of equal ones the first as numbers."""
    return min(_orders(stages), key=lambda order: group_time([stages[job] for job in order]))


def _orders(stages: Sequence[Stages]) -> Iterator[tuple[int, ...]]:
    """All orders; of those that only begin elsewhere in the same cycle, one."""
    jobs = range(len(stages))
    if not stages or len(stages) < len(stages[0]):
        return permutations(jobs)
    return ((0, *others) for others in permutations(jobs[1:]))


@lru_cache(maxsize=_KEPT)
def interleaved_time(stages: tuple[Stages, ...]) -> float:
    """Return the seconds of an iteration of jobs in their best order."""
    return group_time([stages[job] for job in best_order(stages)])


def interleaving_efficiency(stages: Sequence[Stages]) -> float:
    """Return gamma: the mean use of the resources in the best order, 0 to 1; 0 where nothing takes time."""
    time_s = interleaved_time(tuple(stages))
    return sum(map(sum, stages)) / (len(stages[0]) * time_s) if time_s > 0 else 0.0


def efficiency_weight(stages: Sequence[Stages]) -> int:
    """Return gamma as a whole number, for a matching."""
    return round(_UNIT * interleaving_efficiency(stages))


def worth_sharing(stages: Sequence[Stages], overheads: Stages = ()) -> bool:
    """Whether the group's iteration takes no longer than those of its jobs in turn, overheads included.

    ``overheads`` are factors on the iteration of 1, 2, .. jobs on the same GPUs; 1 where there is none.
    """
    together = interleaved_time(tuple(stages)) * _overhead(overheads, len(stages))
    return together <= sum(map(sum, stages)) * _overhead(overheads, 1)


def interleaved_speeds(stages: Sequence[Stages]) -> tuple[float, ...]:
    """Return how fast each of several jobs on the same GPUs is, as a share of its speed alone.

    Every job of the group does one iteration in the time of the group. Resources that no job uses have no turn; more
    jobs than resources run in turn. ``()`` if nothing is known of a job.
    """
    alone_s = [sum(job) for job in stages]
    if min(alone_s, default=0.0) <= 0.0:
        return ()
    used = tuple(zip(*(times for times in zip(*stages, strict=True) if any(times)), strict=True))
    together_s = interleaved_time(used) if len(stages) <= len(used[0]) else sum(alone_s)
    return tuple(mine_s / together_s for mine_s in alone_s)


def _overhead(overheads: Stages, jobs: int) -> float:
    return overheads[jobs - 1] if jobs <= len(overheads) else 1.0
