"""Quotas of virtual clusters, and whether they are legal (HiveD, OSDI 2020, section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topologies.limits import COUNT
from workloads.managers.options import shown
from workloads.managers.placers.hived_cells import Cells

Quotas = Mapping[str, Mapping[str, int]]
"""Virtual cluster -> level -> number of cells."""
TypedQuotas = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Virtual cluster -> GPU type -> level -> number of cells."""


def by_type(quotas: Mapping[str, object], types: Sequence[str]) -> TypedQuotas:
    """Return ``quotas`` by GPU type; of the one type "" where there are no ``types``.

    ``ValueError``, one line, for a type that is not one of ``types``, and for quotas that are of another form.
    """
    if not types:
        return {name: {"": _levels(name, quota)} for name, quota in quotas.items()}
    found = {}
    for name, quota in quotas.items():
        of_types = _mapping(name, quota)
        unknown = next((key for key in of_types if key not in types or not isinstance(of_types[key], Mapping)), None)
        if unknown is not None:
            known = ", ".join(types)
            raise ValueError(f"virtual cluster '{name}' has quotas of '{unknown}', expected of GPU types: {known}")
        found[name] = {key: _levels(name, levels) for key, levels in of_types.items()}
    return found


def _levels(name: str, quota: object) -> dict[str, int]:
    """Level -> number of cells; which levels there are is known only when there is a fabric."""
    found = {}
    for level, count in _mapping(name, quota).items():
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COUNT:
            said = f"virtual cluster '{name}': its quota of level {level} is '{shown(count)}'"
            raise ValueError(f"{said}, expected a whole number of cells")
        found[level] = count
    return found


def _mapping(name: str, quota: object) -> dict[str, object]:
    if not isinstance(quota, Mapping):
        raise ValueError(f"virtual cluster '{name}' has '{shown(quota)}', expected cells by level such as {{host: 4}}")
    return {str(key): value for key, value in quota.items()}


def cells_held(cells: Cells, quota: Mapping[str, int]) -> int:
    """Return the GPUs of all cells of ``quota``."""
    return sum(int(cells.sizes[level][0]) * count for level, count in quota_levels(cells, quota).items())


def quota_levels(cells: Cells, quota: Mapping[str, int]) -> dict[int, int]:
    """Return level (by index) -> number of cells."""
    return {cells.levels.index(name): count for name, count in quota.items()}


def quota_problem(cells: Cells, quotas: Quotas) -> str | None:
    """Return in one line what is wrong with the quotas on these cells; None if every cell of them can be bound.

    With d_k cells of level k in all quotas, and r_k left on it: d_k <= r_k must hold from the top down, where
    r_top is the number of cells there and r_(k-1) = (r_k - d_k) S_k for S_k parts of a cell.
    """
    for name, quota in quotas.items():
        for entry, count in quota.items():
            problem = _entry_problem(cells, entry, count)
            if problem:
                return f"virtual cluster '{name}': {problem}"
    left = 1
    for level in reversed(range(len(cells.levels))):
        wanted = sum(quota.get(cells.levels[level], 0) for quota in quotas.values())
        if wanted > left:
            name = cells.levels[level]
            return f"virtual clusters have {wanted} cells of level {name} in all, expected at most {left}"
        left = _parts_left(cells, level, left - wanted)
    return None


def _entry_problem(cells: Cells, level: str, count: int) -> str | None:
    if level not in cells.levels:
        return f"there is no level of cells '{level}', expected one of: {', '.join(cells.levels)}"
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        return f"its quota of level {level} is {count!r}, expected a whole number of cells"
    for below in range(cells.levels.index(level) + 1):
        if cells.size_of(below) is None:
            return f"cells of level {cells.levels[below]} differ in size here, expected a quota of levels below it"
    return None


def _parts_left(cells: Cells, level: int, cells_left: int) -> int:
    """Cells of the level below when ``cells_left`` of ``level`` are not promised.

    Where cells differ in size, none from there upwards is promised, so that all parts are left.
    """
    if level == 0:
        return 0
    size, below = cells.size_of(level), cells.size_of(level - 1)
    return len(cells.sizes[level - 1]) if size is None or below is None else cells_left * (size // below)
