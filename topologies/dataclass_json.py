"""Dataclasses as JSON, and back: the one codec of the northbound interface, of workers and of records.

The form follows the dataclasses: an object per dataclass with its fields, an array per tuple, an
object per mapping. For :func:`decode`, unknown and missing keys and wrong types raise ``ValueError``
with the place (``job.flows[2].bytes: expected a number, not a string``), and numbers are finite;
:func:`rebuild` takes what :func:`encode` wrote on the other side of a trusted pipe, and checks nothing.
Standard library only: the worker process imports this and must start fast.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_JSON_NAMES: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    dict: "an object",
    list: "an array",
    type(None): "null",
}

_SCALARS = frozenset({str, int, float, bool, type(None)})
"""Nearly every value is one of these, so they are checked first."""


def encode(value: object) -> Any:
    """Return ``value`` (dataclass, mapping, tuple or scalar) as what ``json`` can write."""
    if type(value) in _SCALARS:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in _given_fields(type(value))}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [encode(item) for item in value]
    if isinstance(value, str | int | float):
        return value
    raise ValueError(f"a {type(value).__name__} has no JSON form")


def decode(kind: type[T], data: object, place: str) -> T:
    """Return the ``kind`` that ``data`` describes; ``place`` names it in errors. Raises ``ValueError``."""
    decoded: T = _decode(kind, data, place)
    return decoded


def _decode(kind: Any, data: object, place: str) -> Any:
    origin = get_origin(kind)
    if kind is object or kind is Any:
        return data
    if is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, data, place)
    if origin is tuple:
        return _decode_tuple(get_args(kind), data, place)
    if origin in (Mapping, dict):
        items = _require(dict, data, place)
        return {key: _decode(get_args(kind)[1], item, f"{place}.{key}") for key, item in items.items()}
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(kind), data, place)
    if origin is Literal:
        if data not in get_args(kind):
            raise ValueError(f"{place}: expected one of {', '.join(map(str, get_args(kind)))}, not {data!r}")
        return data
    return _decode_scalar(kind, data, place)


def _decode_scalar(kind: type, data: object, place: str) -> object:
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return _as_float(data, place)
    if type(data) is not kind:
        raise ValueError(f"{place}: expected {_name(kind)}, not {_name(type(data))}")
    if isinstance(data, float) and not math.isfinite(data):
        raise ValueError(f"{place}: expected a finite number, not {data}")
    return data


def _as_float(data: int, place: str) -> float:
    try:
        return float(data)
    except OverflowError:
        raise ValueError(f"{place}: expected a number, not one of {len(str(data))} digits") from None


def _decode_tuple(kinds: tuple[Any, ...], data: object, place: str) -> tuple[object, ...]:
    items = _require(list, data, place)
    if kinds[-1] is Ellipsis:
        return tuple(_decode(kinds[0], item, f"{place}[{index}]") for index, item in enumerate(items))
    if len(items) != len(kinds):
        raise ValueError(f"{place}: expected {len(kinds)} items, not {len(items)}")
    return tuple(
        _decode(kind, item, f"{place}[{index}]") for index, (kind, item) in enumerate(zip(kinds, items, strict=True))
    )


def _decode_union(kinds: tuple[Any, ...], data: object, place: str) -> object:
    if data is None and type(None) in kinds:
        return None
    rest = [kind for kind in kinds if kind is not type(None)]
    if len(rest) == 1:
        return _decode(rest[0], data, place)
    for kind in rest:
        try:
            return _decode(kind, data, place)
        except ValueError:
            continue
    raise ValueError(f"{place}: no reading fits {data!r}")


def _decode_dataclass(kind: type, data: object, place: str) -> object:
    items = _require(dict, data, place)
    given, hints = _given_fields(kind), _hints(kind)
    unknown = sorted(items.keys() - {field.name for field in given})
    if unknown:
        raise ValueError(f"{place}: unknown key '{unknown[0]}', expected {', '.join(field.name for field in given)}")
    missing = [field.name for field in given if field.name not in items and _is_required(field)]
    if missing:
        raise ValueError(f"{place}: key '{missing[0]}' is missing")
    return kind(**{name: _decode(hints[name], item, f"{place}.{name}") for name, item in items.items()})


def _require(kind: type[T], data: object, place: str) -> T:
    if not isinstance(data, kind):
        raise ValueError(f"{place}: expected {_name(kind)}, not {_name(type(data))}")
    return data


def _name(kind: type) -> str:
    return _JSON_NAMES.get(kind, kind.__name__)


@cache
def _given_fields(kind: Any) -> tuple[Field[Any], ...]:
    return tuple(field for field in fields(kind) if field.init)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


Build = Callable[[Any], Any]


def rebuild(kind: type[T], data: object) -> T:
    """Return the ``kind`` that :func:`encode` turned into ``data``. Nothing is checked, which makes it cheap.

    Raises ``TypeError`` where keys are missing or unknown.
    """
    rebuilt: T = _builder(kind)(data)  # type: ignore[arg-type]  # types are hashable
    return rebuilt


def _unchanged(data: Any) -> Any:
    return data


@cache
def _builder(kind: Any) -> Build:
    """Return the function that builds a ``kind`` from its JSON form."""
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass_builder(kind)
    if origin is tuple:
        return _tuple_builder(parts)
    if origin in (Mapping, dict):
        build_value = _builder(parts[1])
        if build_value is not _unchanged:
            return lambda data: {key: build_value(value) for key, value in data.items()}
    if origin in (Union, types.UnionType):
        return _optional_builder(parts)
    return _unchanged


def _dataclass_builder(kind: type) -> Build:
    hints = _hints(kind)
    builders = {field.name: _builder(hints[field.name]) for field in _given_fields(kind)}
    nested = [(name, build) for name, build in builders.items() if build is not _unchanged]
    if not nested:
        return lambda data: kind(**data)
    return lambda data: kind(**{**data, **{name: build(data[name]) for name, build in nested if name in data}})


def _tuple_builder(kinds: tuple[Any, ...]) -> Build:
    builders = [_builder(kind) for kind in kinds if kind is not Ellipsis]
    if all(build is _unchanged for build in builders):
        return tuple
    if kinds[-1] is Ellipsis:
        return lambda data: tuple(map(builders[0], data))
    return lambda data: tuple(build(item) for build, item in zip(builders, data, strict=True))


def _optional_builder(kinds: tuple[Any, ...]) -> Build:
    builders = [build for kind in kinds if (build := _builder(kind)) is not _unchanged]
    if not builders:
        return _unchanged
    if len(kinds) > 2 or type(None) not in kinds:
        raise TypeError(f"which of {', '.join(map(str, kinds))} is meant cannot be told without checks")
    return lambda data: None if data is None else builders[0](data)
