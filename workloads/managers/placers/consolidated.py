"""Consolidated placement: fewest hosts, then fewest ToRs, then the tightest fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Bools, Ints, Structure
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting

Share = tuple[int, int]
"""A host by index, and how many GPUs a job gets there."""


class Consolidated(Placer):
    """Fewest hosts, then fewest ToRs; of those the tightest, so that large holes stay whole."""

    name: ClassVar[str] = "consolidated"
    summary: ClassVar[str] = "fewest hosts, then fewest ToRs, then the tightest fit"

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """The tightest of the placements on fewest hosts."""
        shares = consolidate(state.structure, state.free_by_host, gpus)
        return None if shares is None else placement_of(state, shares)


def placement_of(state: ClusterState, shares: Iterable[Share]) -> Placement:
    """Return the first free GPUs of each host, as many as its share says."""
    structure, chosen = state.structure, []
    for host, count in shares:
        first = int(structure.first_gpu[host])
        mine = state.free[first : first + int(structure.gpus_of_host[host])]
        chosen.append(first + np.flatnonzero(mine)[:count])
    return Placement(structure.in_ring(np.concatenate(chosen)))


def consolidate(structure: Structure, free: Ints, gpus: int) -> list[Share] | None:
    """Return shares of ``gpus`` GPUs where hosts have ``free`` ones; None if these are too few.

    The number of hosts is the smallest possible. One ToR is used where it has room on so many hosts; for
    more ToRs, hosts of equal room are taken ToR by ToR, those under ToRs with most such hosts first.
    """
    if gpus > free.sum():
        return None
    by_tor = structure.by_tor(free)
    if gpus <= free.max():
        return [(_tightest(free >= gpus, free, by_tor[structure.tor_of_host]), gpus)]
    hosts = int(np.searchsorted(np.cumsum(-np.sort(-free)), gpus)) + 1
    for tor in np.argsort(by_tor, kind="stable").tolist():
        if by_tor[tor] >= gpus:
            under = np.where(structure.tor_of_host == tor, free, 0)
            if np.sort(under)[-hosts:].sum() >= gpus:
                return _fill(structure, under, by_tor, gpus, hosts)
    return _fill(structure, free, by_tor, gpus, hosts)


def _fill(structure: Structure, free: Ints, by_tor: Ints, gpus: int, hosts: int) -> list[Share]:
    """The roomiest hosts whole, and what is left on the tightest other, under a ToR in use if possible."""
    tor_of_host = structure.tor_of_host
    kinds = tor_of_host * (int(free.max()) + 1) + free
    alike = np.bincount(kinds)[kinds]
    order = np.lexsort((tor_of_host, -alike, -free))[: hosts - 1]
    left = gpus - int(free[order].sum())
    rest = free.copy()
    rest[order] = 0
    used = np.zeros(len(by_tor), dtype=np.bool_)
    used[tor_of_host[order]] = True
    last = _tightest(rest >= left, ~used[tor_of_host], rest, by_tor[tor_of_host])
    return [*((host, int(free[host])) for host in order.tolist()), (last, left)]


def _tightest(fitting: Bools, *keys: Ints | Bools) -> int:
    """The first of the ``fitting`` hosts by ``keys``, the lowest index on a tie."""
    found = np.flatnonzero(fitting)
    return int(found[np.lexsort(tuple(key[found] for key in reversed(keys)))[0]])
