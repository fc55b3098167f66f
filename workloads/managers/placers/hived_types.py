"""GPU types in HiveD (OSDI 2020): each type of GPU has a cell hierarchy of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from workloads.managers.gpu_index import Ints, Structure, frozen
from workloads.managers.placers.hived_cells import Cell, Cells, cells_among

TypeHosts = tuple[tuple[str, tuple[str, ...]], ...]
"""GPU type -> the hosts that have it, as pairs."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The ``cells`` of all GPUs of a type; ``members`` are these GPUs by their index in the fabric."""

    gpu_type: str
    cells: Cells
    members: Ints

    def name_of(self, cell: Cell) -> str:
        """Return the name of ``cell``, as placements record it."""
        plain = f"{self.cells.levels[cell[0]]}:{cell[1]}"
        return f"{self.gpu_type}/{plain}" if self.gpu_type else plain

    def named(self, names: Iterable[str]) -> Iterator[tuple[str, Cell]]:
        """Yield those of ``names`` that are cells of this hierarchy, each with the cell."""
        for name in names:
            gpu_type, _, plain = name.rpartition("/")
            if gpu_type == self.gpu_type:
                level, _, index = plain.partition(":")
                yield name, (self.cells.levels.index(level), int(index))


def type_hosts(gpu_types: Mapping[str, Sequence[str]]) -> TypeHosts:
    """Return the option ``gpu_types`` as a value."""
    return tuple((name, tuple(hosts)) for name, hosts in gpu_types.items())


@lru_cache(maxsize=8)
def hierarchies(structure: Structure, types: TypeHosts) -> tuple[Hierarchy, ...]:
    """Return a hierarchy per GPU type; without ``types`` one of all GPUs, called ""."""
    if not types:
        everything = np.arange(len(structure.gpus))
        return (Hierarchy("", cells_among(structure, everything), frozen(everything)),)
    found = []
    for name, hosts in types:
        of_type = np.zeros(len(structure.hosts), dtype=np.bool_)
        of_type[[structure.host_index[host] for host in hosts]] = True
        members = np.flatnonzero(of_type[structure.host_of_gpu])
        found.append(Hierarchy(name, cells_among(structure, members), frozen(members)))
    return tuple(found)


def types_problem(structure: Structure, types: TypeHosts) -> str | None:
    """Return in one line what is wrong with ``types``; None if every host has one type."""
    type_of: dict[str, str] = {}
    for name, hosts in types:
        if not hosts:
            return f"GPU type '{name}' has no hosts, expected at least one"
        for host in hosts:
            if host not in structure.host_index:
                return (
                    f"GPU type '{name}' names host '{host}', expected hosts of the fabric such as {structure.hosts[0]}"
                )
            if host in type_of:
                return f"host '{host}' has GPU types '{type_of[host]}' and '{name}', expected one"
            type_of[host] = name
    without = next((host for host in structure.hosts if types and host not in type_of), None)
    return None if without is None else f"host '{without}' has no GPU type, expected one of: {', '.join(dict(types))}"
