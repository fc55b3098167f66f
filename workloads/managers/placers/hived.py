"""HiveD (Zhao et al., OSDI 2020): placement by cells, and virtual clusters with guaranteed quotas.

A virtual cluster is a quota of cells. When one of its jobs needs a cell, a physical one is bound by buddy
allocation, and unbound when the last of its jobs there has ended. If the quotas are legal, every cell of a
quota can be bound whenever it is asked for, whatever happened before (section 4 of the paper). Inside a
virtual cluster a job takes the GPUs with the lowest common ancestor. Each GPU type has cells and quotas of its own.

Crux only says of HiveD that it "allocates GPUs based on physical affinity"; the quotas used there are
unknown. Without quotas, as here by default, the whole cluster is one virtual cluster. Opportunistic jobs use idle
cells of any virtual cluster and bind none; the policy ``guarantee`` preempts them when another job is placed there.
The queue ``priority`` has the priorities inside a virtual cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Bools, Structure
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.options import hosts_named, mapped, naming
from workloads.managers.placers.hived_cells import Cell, choose
from workloads.managers.placers.hived_quotas import (
    Quotas,
    TypedQuotas,
    by_type,
    cells_held,
    quota_levels,
    quota_problem,
)
from workloads.managers.placers.hived_share import Share
from workloads.managers.placers.hived_types import Hierarchy, hierarchies, type_hosts, types_problem

NO_QUOTAS: Final = "without quotas (option virtual_clusters) it ignores the virtual clusters of jobs"


class HiveD(Placer):
    """Placement by physical affinity; virtual clusters have quotas of cells.

    ``virtual_clusters`` has quotas by name, e.g. ``{"vision": {"host": 4, "quad": 1}}``; none makes the whole
    cluster one. With ``gpu_types``, e.g. ``{"V100": ["h0", "h1"], "A100": ["h2"]}``, a quota has a key per type:
    ``{"vision": {"V100": {"host": 2}}}``.
    """

    name: ClassVar[str] = "hived"
    summary: ClassVar[str] = "cells by buddy allocation, lowest common ancestor, virtual clusters with quotas"
    uses: Mapping[str, str] = {"opportunistic": ""}
    knows_gpu_types: ClassVar[bool] = True

    def __init__(
        self,
        virtual_clusters: Quotas | TypedQuotas | None = None,
        gpu_types: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        hosts = mapped(self.name, "gpu_types", gpu_types, "{V100: [h0, h1]}")
        self._types = type_hosts({name: hosts_named(self.name, "gpu_types", of) for name, of in hosts.items()})
        quotas = mapped(self.name, "virtual_clusters", virtual_clusters, "{vision: {host: 4}}")
        with naming(self.name, "virtual_clusters"):
            self._quotas = by_type(quotas, [name for name, _ in self._types])
        self.ignores = {} if self._quotas else {"virtual_cluster": NO_QUOTAS}

    def check(self, structure: Structure) -> None:
        """Raise ``ValueError`` if GPU types do not fit this fabric, or quotas name no level of it or are not legal."""
        problem = types_problem(structure, self._types)
        if problem:
            raise ValueError(problem)
        for hierarchy in self._hierarchies(structure):
            name = hierarchy.gpu_type
            problem = quota_problem(hierarchy.cells, {vc: quota.get(name, {}) for vc, quota in self._quotas.items()})
            if problem:
                raise ValueError(f"GPU type '{name}': {problem}" if name else problem)

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """Why ``job`` can never start: no such GPU type or virtual cluster, or its quota is smaller than the job."""
        if job.gpu_type and job.gpu_type not in dict(self._types):
            known = (
                f"expected one of: {', '.join(dict(self._types))}" if self._types else "the option gpu_types has none"
            )
            return f"job '{job.name}': there is no GPU type '{job.gpu_type}', {known}"
        if not self._takes_quota(job):
            most = max(len(hierarchy.members) for hierarchy in self._hierarchies(structure, job))
            whose = "the fabric"
        elif job.virtual_cluster not in self._quotas:
            known = ", ".join(self._quotas)
            return f"job '{job.name}': there is no virtual cluster '{job.virtual_cluster}', expected one of: {known}"
        else:
            quota = self._quotas[job.virtual_cluster]
            of_types = self._hierarchies(structure, job)
            most = max(cells_held(each.cells, quota.get(each.gpu_type, {})) for each in of_types)
            whose = f"virtual cluster '{job.virtual_cluster}'"
        if job.gpus <= most:
            return None
        of_type = f" of type '{job.gpu_type}'" if job.gpu_type else " of one type" if self._types else ""
        return f"job '{job.name}' asks for {job.gpus} GPUs, {whose} has {most}{of_type}"

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """GPUs of one cell if possible, out of cells that the virtual cluster has bound or may still bind.

        They are of the type that the job asks for, or else of the first type that has room. Opportunistic jobs bind
        no cell: of cells that would do as well, one without them is taken. Where that is not possible, the job waits
        for the policy ``guarantee`` to place it without them.
        """
        for hierarchy in self._hierarchies(state.structure, job):
            placement = self._place_in(hierarchy, state, job, gpus)
            if placement is not None:
                return placement
        return None

    def _takes_quota(self, job: Waiting) -> bool:
        return bool(self._quotas) and not job.opportunistic

    def _hierarchies(self, structure: Structure, job: Waiting | None = None) -> tuple[Hierarchy, ...]:
        """Those of which ``job`` may have GPUs; all without a job."""
        found = hierarchies(structure, self._types)
        wanted = "" if job is None else job.gpu_type
        return tuple(each for each in found if each.gpu_type == wanted) if wanted else found

    def _place_in(self, hierarchy: Hierarchy, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        cells, free = hierarchy.cells, state.free[hierarchy.members]
        if not self._takes_quota(job):
            chosen = choose(cells, free, gpus)
            return None if chosen is None else Placement(state.structure.in_ring(hierarchy.members[chosen]))
        quota = quota_levels(cells, self._quotas.get(job.virtual_cluster, {}).get(hierarchy.gpu_type, {}))
        if not any(quota.values()):
            return None
        guests = _held_by_guests(state, hierarchy)
        share = Share(cells, quota, *_bound(state, hierarchy, job.virtual_cluster, guests), guests)
        taken = share.take(free | guests, gpus)
        if taken is None or (taken & guests).any():
            return None
        names = tuple(map(hierarchy.name_of, share.used_by(taken)))
        return Placement(state.structure.in_ring(hierarchy.members[np.flatnonzero(taken)]), names)


def _bound(state: ClusterState, hierarchy: Hierarchy, virtual_cluster: str, guests: Bools) -> tuple[list[Cell], Bools]:
    """The cells bound to a virtual cluster, and a flag per GPU: unbound, on a host that is present.

    A job that was placed by something else binds its GPUs, and no cell of a virtual cluster; an opportunistic one
    (``guests`` are its GPUs) binds nothing.
    """
    owners: dict[str, str] = {}
    for running in state.running.values():
        if not running.job.opportunistic:
            owners.update(dict.fromkeys(running.bound, running.job.virtual_cluster))
    cells = dict(hierarchy.named(owners))
    mine = [cell for name, cell in cells.items() if owners[name] == virtual_cluster]
    return mine, (state.free[hierarchy.members] | guests) & ~hierarchy.cells.covered(cells.values())


def _held_by_guests(state: ClusterState, hierarchy: Hierarchy) -> Bools:
    """A flag per GPU: whether only opportunistic jobs are there."""
    held = np.zeros(len(state.free), dtype=np.bool_)
    for name, running in state.running.items():
        if running.job.opportunistic:
            held[state.held[name]] = True
    for name, running in state.running.items():
        if running.share_gpus_with and not running.job.opportunistic:
            held[state.held[name]] = False
    return held[hierarchy.members]
