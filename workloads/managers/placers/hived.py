"""HiveD (Zhao et al., OSDI 2020): placement by cells, and virtual clusters with guaranteed quotas.

A virtual cluster is a quota of cells. When one of its jobs needs a cell, a physical one is bound by buddy
allocation, and unbound when the last of its jobs there has ended. If the quotas are legal, every cell of a
quota can be bound whenever it is asked for, whatever happened before (section 4 of the paper). Inside a
virtual cluster a job takes the GPUs with the lowest common ancestor.

Crux only says of HiveD that it "allocates GPUs based on physical affinity"; the quotas used there are
unknown. Without quotas, as here by default, the whole cluster is one virtual cluster. Opportunistic jobs use idle
cells of any virtual cluster and bind none; the policy ``guarantee`` preempts them when another job is placed there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Bools, Structure
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.placers.hived_cells import Cell, Cells, cells_of, choose, lowest_level, whole_cell
from workloads.managers.placers.hived_quotas import Quotas, quota_levels, quota_problem


class HiveD(Placer):
    """Placement by physical affinity; virtual clusters have quotas of cells.

    ``virtual_clusters`` has quotas by name, e.g. ``{"vision": {"host": 4, "quad": 1}}``; none makes the whole
    cluster one.
    """

    name: ClassVar[str] = "hived"
    summary: ClassVar[str] = "cells by buddy allocation, lowest common ancestor, virtual clusters with quotas"

    def __init__(self, virtual_clusters: Quotas | None = None) -> None:
        self._quotas = {name: dict(quota) for name, quota in (virtual_clusters or {}).items()}

    def check(self, structure: Structure) -> None:
        """Raise ``ValueError`` if a quota names no level of this fabric, or the quotas together are not legal."""
        problem = quota_problem(cells_of(structure), self._quotas)
        if problem:
            raise ValueError(problem)

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """Why ``job`` can never start: no such virtual cluster, or its quota is smaller than the job."""
        if not self._quotas or job.opportunistic:
            return None
        if job.virtual_cluster not in self._quotas:
            known = ", ".join(self._quotas)
            return f"job '{job.name}': there is no virtual cluster '{job.virtual_cluster}', expected one of: {known}"
        cells = cells_of(structure)
        quota = quota_levels(cells, self._quotas[job.virtual_cluster])
        most = sum(int(cells.sizes[level][0]) * count for level, count in quota.items())
        if job.gpus <= most:
            return None
        return f"job '{job.name}' asks for {job.gpus} GPUs, virtual cluster '{job.virtual_cluster}' has {most}"

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """GPUs of one cell if possible, out of cells that the virtual cluster has bound or may still bind.

        Opportunistic jobs bind no cell: of cells that would do as well, one without them is taken. Where that is not
        possible, the job waits for the policy ``guarantee`` to place it without them.
        """
        cells = cells_of(state.structure)
        if not self._quotas or job.opportunistic:
            chosen = choose(cells, state.free, gpus)
            return None if chosen is None else Placement(state.structure.in_ring(chosen))
        if job.virtual_cluster not in self._quotas:
            return None
        quota = quota_levels(cells, self._quotas[job.virtual_cluster])
        guests = _held_by_guests(state)
        share = _Share(cells, quota, *_bound(state, cells, job.virtual_cluster), guests)
        taken = share.take(state.free | guests, gpus)
        if taken is None or (taken & guests).any():
            return None
        return Placement(state.structure.in_ring(np.flatnonzero(taken)), share.names(taken))


def _bound(state: ClusterState, cells: Cells, virtual_cluster: str) -> tuple[list[Cell], Bools]:
    """The cells bound to a virtual cluster, and a flag per GPU: unbound, on a host that is present.

    A job that was placed by something else binds its GPUs, and no cell of a virtual cluster; an opportunistic one
    binds nothing.
    """
    unbound = np.ones(len(cells.cell_of[0]), dtype=np.bool_)
    mine: dict[Cell, None] = {}
    for name, running in state.running.items():
        if running.job.opportunistic:
            continue
        unbound[state.held[name]] = False
        for cell in map(_parse, running.bound):
            unbound[cells.inside((cells.levels.index(cell[0]), cell[1]))] = False
            if running.job.virtual_cluster == virtual_cluster:
                mine[cells.levels.index(cell[0]), cell[1]] = None
    unbound &= _present(state)
    return list(mine), unbound


def _held_by_guests(state: ClusterState) -> Bools:
    """A flag per GPU: whether only opportunistic jobs are there."""
    held = np.zeros(len(state.free), dtype=np.bool_)
    for name, running in state.running.items():
        if running.job.opportunistic:
            held[state.held[name]] = True
    return held


def _present(state: ClusterState) -> Bools:
    away = np.zeros(len(state.structure.hosts), dtype=np.bool_)
    away[[state.structure.host_index[host] for host in state.absent]] = True
    return ~away[state.structure.host_of_gpu]


def _parse(bound: str) -> tuple[str, int]:
    level, _, index = bound.partition(":")
    return level, int(index)


@dataclass(slots=True)
class _Share:
    """What a virtual cluster has while one job is placed: cells ``bound`` to it, and ``unbound`` GPUs beyond.

    ``guests``: GPUs of opportunistic jobs, which are left in peace where other cells do as well.
    """

    cells: Cells
    quota: Mapping[int, int]
    bound: list[Cell]
    unbound: Bools
    guests: Bools

    def take(self, free: Bools, gpus: int) -> Bools | None:
        """A flag per GPU: those that the job gets; None if it has to wait.

        One cell is tried first: bound already, else newly bound. If no cell is so large, whole new cells are
        taken, the largest first, and what is left by the same rule; bound cells are broken into last.
        """
        taken = np.zeros(len(free), dtype=np.bool_)
        while gpus > 0:
            allowed = self._mine() & free & ~taken
            enough = self._level_for(gpus)
            found = lowest_level(self.cells.counts(allowed), gpus)
            if found is not None and found <= enough <= max(self.quota):
                beside = allowed & ~self.guests
                as_good = lowest_level(self.cells.counts(beside), gpus) == found
                return _marked(self.cells, taken, beside if as_good else allowed, gpus)
            level = self._unbound_level(gpus)
            cell = None if level is None else whole_cell(self.cells, self.unbound, level, self.guests)
            if cell is None:
                return None if found is None else _marked(self.cells, taken, allowed, gpus)
            fresh = self._bind(cell)
            size = int(fresh.sum())
            if size >= gpus:
                return _marked(self.cells, taken, fresh, gpus)
            taken |= fresh
            gpus -= size
        return taken

    def names(self, taken: Bools) -> tuple[str, ...]:
        """The bound cells that ``taken`` GPUs are in, as they come back in ``Running.bound``."""
        used = (cell for cell in self.bound if (self.cells.inside(cell) & taken).any())
        return tuple(f"{self.cells.levels[level]}:{index}" for level, index in used)

    def _mine(self) -> Bools:
        mine = np.zeros(len(self.unbound), dtype=np.bool_)
        for cell in self.bound:
            mine |= self.cells.inside(cell)
        return mine

    def _level_for(self, gpus: int) -> int:
        """The lowest level with a cell of ``gpus`` GPUs; beyond all levels if there is none."""
        levels = (level for level, sizes in enumerate(self.cells.sizes) if sizes.max() >= gpus)
        return next(levels, len(self.cells.levels))

    def _left(self) -> Iterator[int]:
        """Levels, from the lowest, of which the quota has cells that are not bound."""
        for level in sorted(self.quota):
            if self.quota[level] > sum(bound == level for bound, _ in self.bound):
                yield level

    def _unbound_level(self, gpus: int) -> int | None:
        """The lowest level left that holds all ``gpus``, else the highest level left."""
        left = list(self._left())
        holds = [level for level in left if self.cells.sizes[level][0] >= gpus]
        return holds[0] if holds else left[-1] if left else None

    def _bind(self, cell: Cell) -> Bools:
        inside = self.cells.inside(cell)
        self.bound.append(cell)
        self.unbound[inside] = False
        return inside


def _marked(cells: Cells, taken: Bools, allowed: Bools, gpus: int) -> Bools:
    chosen = choose(cells, allowed, gpus)
    if chosen is not None:
        taken[chosen] = True
    return taken
