"""Places for a job that may preempt others: beside them where it can be, else with as few of them gone as will do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, takewhile

from workloads.managers.cluster_state import ClusterState
from workloads.managers.jobs import Placement

Place = Callable[[ClusterState], Placement | None]
"""Where a placer puts the job in a state of the cluster; None if it has to wait."""


def as_local(place: Place, state: ClusterState, victims: Sequence[str], beside: Placement | None) -> Placement | None:
    """Return a place as local as the one on a cluster without ``victims``; ``beside`` them if that is as local."""
    without = _without(state, victims)
    best = beside if without is state else place(without)
    if best is None or (beside is not None and _spread(state, beside) <= _spread(state, best)):
        return beside
    return _with_few_gone(place, state, victims, best)


def fewest_evicted(
    place: Place, state: ClusterState, victims: Sequence[str]
) -> tuple[Placement, tuple[str, ...]] | None:
    """Return a place for which some of ``victims`` leave, the first ones first, and who leaves; None if there is none.

    Those on its GPUs leave. Where that is not enough, since a quota is full, all leave without whom it was found.
    """
    best = place(_without(state, victims))
    if best is None:
        return None
    found, gone = best, len(victims)
    for few in takewhile(lambda few: few < len(victims), (2**power for power in count())):
        place_of_few = place(_without(state, victims[:few]))
        if place_of_few is not None:
            found, gone = place_of_few, few
            break
    leaving = tuple(name for name in victims[:gone] if name in state.running)
    there = tuple(name for name in leaving if not set(state.running[name].gpus).isdisjoint(found.gpus))
    again = place(_without(state, there)) if there else None
    return (found, leaving) if again is None else (again, there)


def _with_few_gone(place: Place, state: ClusterState, victims: Sequence[str], best: Placement) -> Placement:
    """A place with 1, 2, 4, .. victims gone, if it is as local as the ``best``, with all of them gone."""
    gone = 1
    while gone < len(victims):
        found = place(_without(state, victims[:gone]))
        if found is not None and _spread(state, found) <= _spread(state, best):
            return found
        gone *= 2
    return best


def _without(state: ClusterState, jobs: Sequence[str]) -> ClusterState:
    """The state without those of ``jobs`` that run."""
    for name in jobs:
        state = state.end(name) if name in state.running else state
    return state


def _spread(state: ClusterState, placement: Placement) -> tuple[int, int]:
    """Number of hosts and of ToRs."""
    structure = state.structure
    gpus = structure.indices(placement.gpus)
    return len(set(structure.host_of_gpu[gpus].tolist())), len(set(structure.tor_of_gpu[gpus].tolist()))
