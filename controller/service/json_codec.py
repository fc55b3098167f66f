"""Fabric, Job and Decision as JSON, and back: what the northbound interface speaks.

The form follows the dataclasses: an object per dataclass with its fields, an array per tuple, an
object per mapping. Unknown and missing keys and wrong types raise ``ValueError`` with the place
(``job.flows[2].bytes: expected a number, not a string``). Numbers are finite.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from controller.decision import Decision
from topologies.fabric import Fabric
from workloads.job import Job

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


def encode(value: object) -> Any:
    """Return ``value`` (dataclass, mapping, tuple or scalar) as what ``json`` can write."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in _given_fields(type(value))}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [encode(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"a {type(value).__name__} has no JSON form")


def decode(kind: type[T], data: object, place: str) -> T:
    """Return the ``kind`` that ``data`` describes; ``place`` is what errors call it. Raises ``ValueError``."""
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
        return float(data)
    if type(data) is not kind:
        raise ValueError(f"{place}: expected {_name(kind)}, not {_name(type(data))}")
    if isinstance(data, float) and not math.isfinite(data):
        raise ValueError(f"{place}: expected a finite number, not {data}")
    return data


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


def to_json(value: Fabric | Job | Decision) -> str:
    """Return ``value`` as canonical JSON: keys sorted, no spaces, the same bytes for the same value."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def fabric_from_json(data: object) -> Fabric:
    """Return the fabric of parsed JSON ``data``; every end of a link and of a port must exist."""
    fabric = decode(Fabric, data, "fabric")
    for link in fabric.links.values():
        if link.reverse not in fabric.links:
            raise ValueError(f"fabric.links.{link.name}: reverse '{link.reverse}' is no link")
    for port in fabric.ports.values():
        for kind, name, known in (
            ("host", port.host, fabric.hosts.keys()),
            ("nic", port.nic, fabric.nics.keys()),
            ("switch", port.switch, fabric.switches.keys()),
        ):
            if name not in known:
                raise ValueError(f"fabric.ports.{port.name}: {kind} '{name}' is not in the fabric")
    return fabric


def job_from_json(data: object) -> Job:
    """Return the job of parsed JSON ``data``; transfers must name flows of the job."""
    job = decode(Job, data, "job")
    for index, phase in enumerate(job.phases):
        for transfer in phase.transfers:
            for flow in (transfer.flow, transfer.after):
                if flow is not None and flow not in job.flow_by_id:
                    raise ValueError(f"job.phases[{index}]: transfer names unknown flow '{flow}'")
    return job


def decision_from_json(data: object) -> Decision:
    """Return the decision of parsed JSON ``data``."""
    return decode(Decision, data, "decision")
