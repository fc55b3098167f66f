"""Lyra's placement (Li et al., EuroSys 2023): base and flexible workers of elastic jobs on different groups of servers.

Elastic jobs prefer servers on loan, others the cluster's own. A server that has only flexible workers goes back, or
to another job, by scaling in. Inside a group: fewest hosts, then the tightest fit (best-fit decreasing).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Bools, Ints, Structure
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Running, Waiting
from workloads.managers.options import flag
from workloads.managers.placers.consolidated import Share, consolidate

_EMPTY, _FLEXIBLE, _BASE = 0, 1, 2
_FOR_BASE: Final = (_BASE, _EMPTY, _FLEXIBLE)
_FOR_FLEXIBLE: Final = (_FLEXIBLE, _EMPTY, _BASE)


class ElasticGroups(Placer):
    """The first ``min_gpus`` of an elastic job are base workers; their GPUs are what a placement records as bound.

    A job stays on GPUs of one type: the one that it asks for (``Waiting.gpu_type``), else any. Where the cluster's GPU
    types have a ``mixed_efficiency``, a job that asks for none may have several, and grows onto others if it gains. It
    then has of each type what the policy ``lyra`` counts: all that is free of one before any of the next.
    ``on_loan_first``: whether elastic jobs prefer servers on loan; if not, the cluster's own.
    """

    name: ClassVar[str] = "elastic-groups"
    summary: ClassVar[str] = "elastic jobs on servers on loan first, base and flexible workers on different servers"
    knows_gpu_types: ClassVar[bool] = True

    def __init__(self, *, on_loan_first: bool = True) -> None:
        self._on_loan_first = flag(self.name, "on_loan_first", on_loan_first)

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """A job needs enough GPUs of the type that it asks for; of one type, if jobs cannot have several."""
        types = (job.gpu_type,) if job.gpu_type else structure.types
        if not job.gpu_type and structure.gpu_types.mixed_efficiency is not None:
            return None
        there = max(structure.gpus_of_type.get(name, 0) for name in types)
        if there >= least_gpus(job):
            return None
        kind = f"type '{job.gpu_type}'" if job.gpu_type else "one type"
        return f"job '{job.name}' asks for {least_gpus(job)} GPUs of {kind}, the fabric has {there}"

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """The first group of hosts with room for all ``gpus``."""
        groups = _groups(state)
        for hosts in _of_one_type(state, job, prefer_loaned=is_elastic(job) and self._on_loan_first):
            placed = _placed(state, job, gpus, [np.where(hosts, state.free_by_host, 0)], groups)
            if placed is not None:
                return placed
        if not _may_mix(state.structure, job):
            return None
        by_type = _free_by_type(state, on_loan_first=is_elastic(job) and self._on_loan_first)
        return _placed(state, job, gpus, by_type, groups)

    def resized(self, state: ClusterState, running: Running, gpus: int) -> Placement | None:
        """Base workers stay where they are: flexible ones leave, or come, host by host."""
        base = base_gpus(running)
        if gpus <= len(running.gpus):
            return _named(state, base, _kept_flexible(state, running, base, gpus))
        groups, hosts_of = _groups(state), state.structure.host_of_gpu[state.held[running.name]]
        for hosts in _pools(state, running.job, prefer_loaned=self._on_loan_first):
            if not hosts[hosts_of].all():
                continue
            free = np.where(hosts, state.free_by_host, 0)
            rest = self._beside(state, running, free, gpus - len(running.gpus), groups)
            if rest is not None:
                added = _first_free(state, rest, {})
                if not _gains(state, running, added):
                    continue
                more = [state.structure.gpus[gpu] for gpu in added]
                return _named(state, base, [*(gpu for gpu in running.gpus if gpu not in set(base)), *more])
        return None

    @staticmethod
    def _beside(state: ClusterState, running: Running, free: Ints, gpus: int, groups: Ints) -> list[Share] | None:
        """Hosts for ``gpus`` GPUs more of a job: of the type of its base workers as far as there are any."""
        structure = state.structure
        own = {structure.type_of_host[host] for host in _hosts_of(state, base_gpus(running))}
        of_own = np.array([name in own for name in structure.type_of_host], dtype=np.bool_)
        near = min(gpus, int(free[of_own].sum()))
        first = _take(state, np.where(of_own, free, 0), near, groups, _FOR_FLEXIBLE)
        rest = _take(state, np.where(of_own, 0, free), gpus - near, groups, _FOR_FLEXIBLE)
        return None if first is None or rest is None else [*first, *rest]


def _placed(state: ClusterState, job: Waiting, gpus: int, pools: Sequence[Ints], groups: Ints) -> Placement | None:
    """Base workers on the first of ``pools`` (free GPUs by host) with room for all, else on one after the other.

    Flexible workers come beside them, then from one pool after the other.
    """
    base = min(gpus, least_gpus(job))
    alone = next((free for free in pools if free.sum() >= base), None)
    of_base = _in_turn(state, pools if alone is None else [alone], base, groups, _FOR_BASE)
    if of_base is None:
        return None
    left = [free.copy() for free in pools]
    for free in left:
        for host, count in of_base:
            free[host] = max(0, free[host] - count)
    used = [host for host, _ in of_base]
    beside = sorted(range(len(pools)), key=lambda place: not pools[place][used].any())
    then = groups.copy()
    then[used] = _BASE
    rest = _in_turn(state, [left[place] for place in beside], gpus - base, then, _FOR_FLEXIBLE)
    if rest is None:
        return None
    first = _first_free(state, of_base, {})
    more = _first_free(state, rest, Counter(dict(of_base)))
    names = state.structure.gpus
    placed = _named(state, [names[gpu] for gpu in first], [names[gpu] for gpu in more])
    return placed if is_elastic(job) else replace(placed, bound=())


def _in_turn(
    state: ClusterState, pools: Sequence[Ints], gpus: int, groups: Ints, order: Sequence[int]
) -> list[Share] | None:
    """Hosts for ``gpus`` GPUs: all that is free in one pool before any of the next."""
    found: list[Share] = []
    for free in pools:
        here = min(gpus, int(free.sum()))
        shares = _take(state, free, here, groups, order)
        if shares is None:
            return None
        found += shares
        gpus -= here
    return None if gpus else found


def _free_by_type(state: ClusterState, on_loan_first: bool) -> list[Ints]:
    """Free GPUs by host, of each type: in the order in which Lyra counts them (``lyra_pools``)."""
    structure, loaned = state.structure, {state.structure.gpu_types.type_of(host) for host in state.loaned}
    speeds = structure.speed_of_type
    order = sorted(structure.types, key=lambda name: ((name in loaned) != on_loan_first, -speeds[name], name))
    return [np.where(_of_type(structure, name), state.free_by_host, 0) for name in order]


def _hosts_of(state: ClusterState, gpus: Sequence[str]) -> list[int]:
    structure = state.structure
    found: list[int] = structure.host_of_gpu[structure.indices(gpus)].tolist()
    return found


def least_gpus(job: Waiting) -> int:
    """The base demand of a job."""
    return job.gpus if job.min_gpus is None else job.min_gpus


def base_gpus(running: Running) -> tuple[str, ...]:
    """The GPUs of a running job's base workers: those it was placed on, and others in place of those it has lost."""
    mine = set(running.gpus)
    kept = [gpu for gpu in running.bound if gpu in mine]
    others = (gpu for gpu in running.gpus if gpu not in set(kept))
    return (*kept, *others)[: least_gpus(running.job)]


def is_elastic(job: Waiting) -> bool:
    """Whether the number of its GPUs may change."""
    return least_gpus(job) < (job.max_gpus or job.gpus)


def _groups(state: ClusterState) -> Ints:
    """Shape (hosts,): whether a host is empty, has only flexible workers, or has base workers."""
    structure = state.structure
    flexible = np.zeros(len(structure.hosts), dtype=np.intp)
    for each in state.running.values():
        if len(each.gpus) > least_gpus(each.job):
            base = set(base_gpus(each))
            beyond = structure.indices(gpu for gpu in each.gpus if gpu not in base)
            np.add.at(flexible, structure.host_of_gpu[beyond], 1)
    used = structure.gpus_of_host - state.free_by_host
    groups = np.where(used == 0, _EMPTY, np.where(used == flexible, _FLEXIBLE, _BASE))
    return groups


def _pools(state: ClusterState, job: Waiting, prefer_loaned: bool) -> Iterator[Bools]:
    """Flags per host: those of one type, then all, where jobs may have several."""
    yield from _of_one_type(state, job, prefer_loaned)
    if _may_mix(state.structure, job):
        yield np.ones(len(state.structure.hosts), dtype=np.bool_)


def _may_mix(structure: Structure, job: Waiting) -> bool:
    """Whether ``job`` may have GPUs of several types."""
    return not job.gpu_type and len(structure.types) > 1 and structure.gpu_types.mixed_efficiency is not None


def _of_one_type(state: ClusterState, job: Waiting, prefer_loaned: bool) -> Iterator[Bools]:
    """Flags per host, the preferred hosts first: on loan or not, of one type; then all of a type.

    Of a job that asks for a type: that type alone.
    """
    structure = state.structure
    loaned = np.zeros(len(structure.hosts), dtype=np.bool_)
    loaned[[structure.host_index[host] for host in state.loaned]] = True
    allowed = (job.gpu_type,) if job.gpu_type else structure.types
    flags = [_of_type(structure, name) for name in allowed]
    for on_loan in (prefer_loaned, not prefer_loaned):
        yield from ((loaned == on_loan) & of_type for of_type in flags)
    yield from flags


def _of_type(structure: Structure, gpu_type: str) -> Bools:
    """Shape (hosts,): whether a host has GPUs of this type."""
    if gpu_type not in structure.types:
        return np.zeros(len(structure.hosts), dtype=np.bool_)
    flags: Bools = structure.type_number_of_host == structure.types.index(gpu_type)
    return flags


def _gains(state: ClusterState, running: Running, added: Sequence[int]) -> bool:
    """Whether a job is faster with these GPUs too: of one type always, of several not always."""
    structure, types = state.structure, state.structure.gpu_types
    if types.mixed_efficiency is None:
        return True
    held = [structure.hosts[host] for host in structure.host_of_gpu[state.held[running.name]].tolist()]
    more = [structure.hosts[host] for host in structure.host_of_gpu[list(added)].tolist()]
    return types.speed([*held, *more]) > types.speed(held)


def _take(state: ClusterState, free: Ints, gpus: int, groups: Ints, order: Sequence[int]) -> list[Share] | None:
    """Hosts for ``gpus`` GPUs: of the first group alone if it has room, else of the first two, else of all."""
    if gpus == 0:
        return []
    for last in range(1, len(order) + 1):
        shares = consolidate(state.structure, np.where(np.isin(groups, order[:last]), free, 0), gpus)
        if shares is not None:
            return shares
    return None


def _first_free(state: ClusterState, shares: Sequence[Share], passed: Counter[int] | dict[int, int]) -> list[int]:
    """Indices of each host's free GPUs, as many as its share says, behind those ``passed``."""
    structure, chosen = state.structure, list[int]()
    for host, count in shares:
        first, before = int(structure.first_gpu[host]), passed.get(host, 0)
        mine = np.flatnonzero(state.free[first : first + int(structure.gpus_of_host[host])])
        chosen += (first + mine[before : before + count]).tolist()
    return chosen


def _kept_flexible(state: ClusterState, running: Running, base: Sequence[str], gpus: int) -> list[str]:
    """The flexible GPUs that stay with ``gpus`` in all: of the base workers' type, then where the job has most."""
    structure, of_base = state.structure, set(base)
    host_of = {gpu: int(structure.host_of_gpu[structure.gpu_index[gpu]]) for gpu in running.gpus}
    here = Counter(host_of.values())
    own = {structure.type_of_host[host_of[gpu]] for gpu in base}
    beyond = [gpu for gpu in running.gpus if gpu not in of_base]

    def goes_last(gpu: str) -> tuple[bool, int]:
        return structure.type_of_host[host_of[gpu]] not in own, -here[host_of[gpu]]

    return sorted(beyond, key=goes_last)[: max(0, gpus - len(base))]


def _named(state: ClusterState, base: Sequence[str], flexible: Sequence[str]) -> Placement:
    chosen = state.structure.indices((*base, *flexible))
    return Placement(state.structure.in_ring(chosen), tuple(base))
