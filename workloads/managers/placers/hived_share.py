"""What a virtual cluster of HiveD has while a job is placed: cells bound to it, and those it may still bind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from workloads.managers.gpu_index import Bools
from workloads.managers.placers.hived_cells import Cell, Cells, choose, lowest_level, whole_cell


@dataclass(slots=True)
class Share:
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

    def used_by(self, taken: Bools) -> tuple[Cell, ...]:
        """The bound cells that ``taken`` GPUs are in."""
        return tuple(cell for cell in self.bound if (self.cells.inside(cell) & taken).any())

    def _mine(self) -> Bools:
        return self.cells.covered(self.bound)

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
