"""Cells: a cluster as a tree of GPUs, pairs, quads, hosts and ToRs, and buddy allocation in it (HiveD, OSDI 2020).

A cell of a level is made of cells of the level below, its buddies. In a buddy system a cell is split only
where none of its level is left over from an earlier split, and buddies that are free again are one cell
again. Both follow from one rule here: of the cells that fit, take the one whose surroundings are the most
used (:func:`tightest`). Free lists need not be kept: they are what :func:`free_cells` reads off the GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from workloads.managers.gpu_index import Bools, Ints, Structure, frozen

HOST: Final = "host"
TOR: Final = "tor"
CLUSTER: Final = "cluster"
_NAMES: Final[Mapping[int, str]] = {1: "gpu", 2: "pair", 4: "quad", 8: "octet"}

Cell = tuple[int, int]
"""Level and index: levels from GPUs upwards, indices in the fabric's order."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The tree: names of ``levels`` from GPU to cluster, and for each level the cell that a GPU is in."""

    levels: tuple[str, ...]
    cell_of: tuple[Ints, ...]

    @cached_property
    def sizes(self) -> tuple[Ints, ...]:
        """GPUs of each cell, level by level."""
        return tuple(frozen(np.bincount(cells)) for cells in self.cell_of)

    @cached_property
    def first_of(self) -> tuple[Ints, ...]:
        """A GPU of each cell, level by level."""
        return tuple(frozen(np.unique(cells, return_index=True)[1]) for cells in self.cell_of)

    @cached_property
    def _parents(self) -> tuple[Ints, ...]:
        """For each level but the highest, the cell of the level above that a cell is part of."""
        pairs = zip(self.cell_of[1:], self.first_of, strict=False)
        return tuple(frozen(above[first]) for above, first in pairs)

    def counts(self, gpus: Bools) -> tuple[Ints, ...]:
        """How many of ``gpus`` (a flag per GPU) each cell has, level by level: each adds up the level below."""
        found = [gpus.astype(np.intp)]
        for parents in self._parents:
            found.append(np.bincount(parents, found[-1]).astype(np.intp))
        return tuple(found)

    def inside(self, cell: Cell) -> Bools:
        """A flag per GPU: whether it is in ``cell``."""
        flags: Bools = self.cell_of[cell[0]] == cell[1]
        return flags

    def covered(self, cells: Iterable[Cell]) -> Bools:
        """A flag per GPU: whether it is in one of ``cells``."""
        by_level: dict[int, list[int]] = {}
        for level, index in cells:
            by_level.setdefault(level, []).append(index)
        flags: Bools = np.zeros(len(self.cell_of[0]), dtype=np.bool_)
        for level, indices in by_level.items():
            wanted = np.zeros(len(self.sizes[level]), dtype=np.bool_)
            wanted[indices] = True
            flags |= wanted[self.cell_of[level]]
        return flags

    def size_of(self, level: int) -> int | None:
        """GPUs of every cell of a level; None if cells differ."""
        sizes = self.sizes[level]
        return int(sizes[0]) if (sizes == sizes[0]).all() else None


@lru_cache(maxsize=4)
def cells_of(structure: Structure) -> Cells:
    """Return the cells of a fabric: powers of two inside hosts as far as they divide them, hosts, ToRs, all.

    Hosts of two GPUs have no pairs: these are the hosts.
    """
    return cells_among(structure, np.arange(len(structure.gpus)))


def cells_among(structure: Structure, gpus: Ints) -> Cells:
    """Return the cells that only ``gpus`` make up: all those of some hosts, by index in the fabric, ascending."""
    host_of, local = structure.host_of_gpu[gpus], gpus - structure.first_gpu[structure.host_of_gpu[gpus]]
    levels: dict[str, Ints] = {}
    size, smallest = 1, int(structure.gpus_of_host[host_of].min())
    while size == 1 or (size < smallest and smallest % size == 0):
        levels[_NAMES.get(size, f"{size}-gpus")] = _numbered(host_of * len(structure.gpus) + local // size)
        size *= 2
    levels[HOST] = _numbered(host_of)
    levels[TOR] = _numbered(structure.tor_of_gpu[gpus])
    levels[CLUSTER] = frozen(np.zeros(len(gpus), dtype=np.intp))
    return Cells(tuple(levels), tuple(levels.values()))


def _numbered(groups: Ints) -> Ints:
    """The same groups, numbered from 0."""
    return frozen(np.unique(groups, return_inverse=True)[1])


def tightest(cells: Cells, counts: tuple[Ints, ...], level: int, candidates: Ints) -> int:
    """Return the one of ``candidates`` (cells of ``level``) around which ``counts`` are the least.

    The cell itself is compared first, then the cell that it is part of, and so on up; on a tie the first.
    """
    left, gpus = candidates, cells.first_of[level][candidates]
    for above in range(level, len(cells.levels)):
        if len(left) == 1:
            break
        found = counts[above][cells.cell_of[above][gpus]]
        least = found == found.min()
        left, gpus = left[least], gpus[least]
    return int(left[0])


def whole_cell(cells: Cells, available: Bools, level: int, avoid: Bools | None = None) -> Cell | None:
    """Return the cell of ``level`` that buddy allocation binds: all of its GPUs ``available``; None if there is none.

    It comes out of the lowest free cell at or above ``level``, which is split as far as needed. Of such cells it is one
    with the fewest GPUs of ``avoid``.
    """
    counts = cells.counts(available)
    found = np.flatnonzero(counts[level] == cells.sizes[level])
    if not len(found):
        return None
    if avoid is not None and avoid.any():
        found = _out_of_the_lowest(cells, counts, level, found)
        there = cells.counts(avoid)[level][found]
        found = found[there == there.min()]
    return level, tightest(cells, counts, level, found)


def _out_of_the_lowest(cells: Cells, counts: tuple[Ints, ...], level: int, found: Ints) -> Ints:
    """Those of the free cells ``found`` that are part of the lowest free cell: all that buddy allocation may bind."""
    for above in range(level + 1, len(cells.levels)):
        around = cells.cell_of[above][cells.first_of[level][found]]
        part_of_larger: Bools = counts[above][around] == cells.sizes[above][around]
        if not part_of_larger.all():
            outside: Ints = found[~part_of_larger]
            return outside
    return found


def lowest_level(counts: tuple[Ints, ...], gpus: int) -> int | None:
    """Return the lowest level on which a cell has ``gpus`` of those in ``counts``; None if there is none."""
    return next((level for level, found in enumerate(counts) if found.max() >= gpus), None)


def choose(cells: Cells, allowed: Bools, gpus: int) -> Ints | None:
    """Return ``gpus`` of the ``allowed`` GPUs with the lowest common ancestor, by index; None if they are too few.

    Of the cells of that level the tightest; inside it whole parts, the roomiest first, then what is left by
    the same rule.
    """
    counts = cells.counts(allowed)
    level = lowest_level(counts, gpus)
    if level is None:
        return None
    cell = tightest(cells, counts, level, np.flatnonzero(counts[level] >= gpus))
    rest = allowed & cells.inside((level, cell))
    members = np.flatnonzero(rest)
    if len(members) == gpus:
        return members
    part_of = cells.cell_of[level - 1][members]
    parts = np.flatnonzero(np.bincount(part_of))
    room = counts[level - 1][parts]
    order = np.argsort(-room, kind="stable")
    filled = np.zeros(len(cells.sizes[level - 1]), dtype=np.bool_)
    filled[parts[order[np.cumsum(room[order]) <= gpus]]] = True
    taken = members[filled[part_of]]
    rest[taken] = False
    more = choose(cells, rest, gpus - len(taken)) if len(taken) < gpus else None
    return taken if more is None else np.concatenate((taken, more))


def free_cells(cells: Cells, free: Bools) -> dict[str, tuple[int, ...]]:
    """Return the free lists of a buddy system: per level the free cells that are not part of a larger free cell."""
    counts = cells.counts(free)
    whole = [found == sizes for found, sizes in zip(counts, cells.sizes, strict=True)]
    lists: dict[str, tuple[int, ...]] = {}
    for level, name in enumerate(cells.levels):
        alone = whole[level]
        if level + 1 < len(cells.levels):
            alone = alone & ~whole[level + 1][cells.cell_of[level + 1][cells.first_of[level]]]
        lists[name] = tuple(np.flatnonzero(alone).tolist())
    return lists
