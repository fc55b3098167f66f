"""Records with named fields for the loops of a simulation, and their columns for everything else.

They are a structured array where loops are compiled. In plain Python, where a field of such an array takes
microseconds, they are objects, of which it takes 50 ns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.fluid.compiled import has_compiler

_LINE: Final = 64
"""Bytes that come from memory at a time."""


def records(count: int, kind: np.dtype[Any], /, **values: ArrayLike) -> Any:
    """``count`` records, zero but for ``values``: ``records[number].field`` is a value that can be set."""
    if not has_compiler():
        return _objects(count, kind, values)
    made = _in_a_line(count, kind)
    for name, value in values.items():
        made[name] = value
    return made


def more_records(old: Any, kind: np.dtype[Any], by: int) -> Any:
    """``old`` records and ``by`` more behind them, all zero."""
    if not has_compiler():
        return np.concatenate((old, _objects(by, kind, {})))
    made = _in_a_line(len(old) + by, kind)
    made[: len(old)] = old
    return made


def _in_a_line(count: int, kind: np.dtype[Any]) -> Any:
    """``count`` records, all zero, of which the first begins a line of the memory."""
    size = count * kind.itemsize
    room = np.zeros(size + _LINE, np.uint8)
    begin = -room.ctypes.data % _LINE
    return room[begin : begin + size].view(kind).view(np.recarray)


def columns(of: Any) -> Any:
    """The fields of the records ``of``: ``columns(of)[field][number]`` is a value that can be set.

    Outside of compiled loops that takes 0.2 us, and an attribute of a record of numpy 3 us.
    """
    if not has_compiler():
        return _Columns(of)
    return of.view(np.dtype((np.void, of.dtype)), np.ndarray)


def note_follower(flows: Any, place: int, after: int) -> None:
    """Let the flow at ``place`` be told of what arrives on ``after``, which it forwards; ``flows``: their columns.

    Two flows may forward one: a host of a tree has two children.
    """
    first = flows["follower"][after]
    taken = first >= 0 and first != place and flows["after"][first] == after
    flows["other_follower" if taken else "follower"][after] = place


def _objects(count: int, kind: np.dtype[Any], values: Mapping[str, ArrayLike]) -> NDArray[np.object_]:
    made = np.empty(count, object)
    made[:] = [_zero(kind)() for _ in range(count)]
    for name, value in values.items():
        for record, each in zip(made, np.broadcast_to(value, count).tolist(), strict=True):
            setattr(record, name, each)
    return made


@cache
def _zero(kind: np.dtype[Any]) -> type:
    """A class of objects whose fields are zero until they are set."""
    return type("Record", (), {name: kind[name].type().item() for name in kind.names or ()})


class _Columns:
    """The columns of records that are objects."""

    def __init__(self, of: NDArray[np.object_]) -> None:
        self._records = of

    def __getitem__(self, field: str) -> _Column:
        return _Column(self._records, field)

    def __setitem__(self, field: str, values: ArrayLike) -> None:
        for record, value in zip(self._records.flat, np.broadcast_to(values, self._records.shape).flat, strict=True):
            setattr(record, field, value.item())


class _Column:
    """One field of records that are objects."""

    def __init__(self, of: NDArray[np.object_], field: str) -> None:
        self._records, self._field = of, field

    def __getitem__(self, number: int | tuple[int, ...]) -> Any:
        return getattr(self._records[number], self._field)

    def __setitem__(self, number: int | tuple[int, ...], value: Any) -> None:
        setattr(self._records[number], self._field, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = [getattr(record, self._field) for record in self._records.flat]
        return np.array(values, dtype).reshape(self._records.shape)
