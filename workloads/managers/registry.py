"""Queues, policies, placers and capacities by name: the built-in ones, and those of other packages.

A package adds one by an entry point of the group ``testbed.queues``, ``testbed.policies``, ``testbed.placers``
or ``testbed.capacities``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Final, Literal, cast

from workloads.managers.capacities import Planned, Steady
from workloads.managers.consolidated import Consolidated
from workloads.managers.fair import Fair
from workloads.managers.gandiva import TimeSlices
from workloads.managers.growing import GrowShrink
from workloads.managers.hived import HiveD
from workloads.managers.kubernetes import Kubernetes
from workloads.managers.lending import InferenceLoad
from workloads.managers.lyra import Lyra
from workloads.managers.manager import Manager
from workloads.managers.muri import MuriNet
from workloads.managers.none import FirstFree
from workloads.managers.optimus import Optimus
from workloads.managers.packing import Packing
from workloads.managers.philly import Locality, Philly
from workloads.managers.points import Capacity, Placer, Policy, Queue
from workloads.managers.policies import Gang, Guarantee
from workloads.managers.queues import Fifo, FifoBackfill
from workloads.managers.sharing import MuriSharing
from workloads.managers.shortest import Srsf, Srtf
from workloads.managers.skew import SkewAware
from workloads.managers.tiresias import Tiresias

Point = Literal["queue", "policy", "placer", "capacity"]
Options = Mapping[str, object]

GROUPS: Final[Mapping[Point, str]] = MappingProxyType(
    {
        "queue": "testbed.queues",
        "policy": "testbed.policies",
        "placer": "testbed.placers",
        "capacity": "testbed.capacities",
    }
)
"""Plug-in point -> group of its entry points."""

_METHODS: Final[Mapping[Point, str]] = MappingProxyType(
    {"queue": "eligible", "policy": "decide", "placer": "place", "capacity": "changes"}
)
_BUILT_IN: Final[Mapping[Point, Mapping[str, Callable[..., object]]]] = MappingProxyType(
    {
        "queue": {part.name: part for part in (Fifo, FifoBackfill, Fair)},
        "policy": {
            part.name: part
            for part in (Gang, Guarantee, Srtf, Srsf, Philly, Tiresias, TimeSlices, Packing, GrowShrink,
                         Optimus, Lyra, Kubernetes, MuriSharing)
        },
        "placer": {part.name: part for part in (FirstFree, Consolidated, HiveD, MuriNet, Locality, SkewAware)},
        "capacity": {part.name: part for part in (Steady, Planned, InferenceLoad)},
    }
)


def names(point: Point) -> tuple[str, ...]:
    """Return the names of all parts for a plug-in point, sorted."""
    return tuple(sorted(_BUILT_IN[point].keys() | {entry.name for entry in entry_points(group=GROUPS[point])}))


def create(point: Point, name: str, options: Options | None = None, seed: int | None = None) -> object:
    """Return the part ``name`` with its ``options``; ``seed`` goes to a part that takes one.

    Raises ``ValueError``, one line, for an unknown name or option, or an option's bad value.
    """
    factory = _find(point, name)
    given = dict(options or {})
    known, takes_any = _options(factory)
    unknown = sorted(given.keys() - known)
    if unknown and not takes_any:
        expected = ", ".join(sorted(known)) or "none"
        raise ValueError(f"unknown option '{unknown[0]}' of {point} {name}, expected: {expected}")
    if seed is not None and "seed" in known:
        given.setdefault("seed", seed)
    try:
        part = factory(**given)
    except (TypeError, AttributeError) as error:  # an option that must be given, or one of the wrong type
        raise ValueError(f"{point} {name}: {error}") from error
    missing = [what for what in ("name", "summary", _METHODS[point]) if not hasattr(part, what)]
    if missing:
        raise ValueError(f"{point} '{name}' has no {missing[0]}, expected name, summary and {_METHODS[point]}()")
    return part


def manager(
    placer: str = "none",
    queue: str = "fifo-backfill",
    policy: str = "gang",
    capacity: str = "steady",
    options: Mapping[Point, Options] | None = None,
    seed: int | None = None,
) -> Manager:
    """Return the manager of the four parts of these names, each with its ``options``.

    Raises ``ValueError`` as :func:`create` does.
    """
    chosen: dict[Point, str] = {"queue": queue, "policy": policy, "placer": placer, "capacity": capacity}
    parts = {point: create(point, name, (options or {}).get(point), seed) for point, name in chosen.items()}
    return Manager(
        cast("Queue", parts["queue"]), cast("Policy", parts["policy"]),
        cast("Placer", parts["placer"]), cast("Capacity", parts["capacity"]),
    )  # fmt: skip


def summary(point: Point, name: str) -> str:
    """Return what a part says of itself in one line, "" if it says nothing; ``ValueError`` if it cannot be loaded."""
    return " ".join(str(getattr(_find(point, name), "summary", "")).split())


def _find(point: Point, name: str) -> Callable[..., object]:
    if name in _BUILT_IN[point]:
        return _BUILT_IN[point][name]
    for entry in entry_points(group=GROUPS[point], name=name):
        return _loaded(point, name, entry.load)
    raise ValueError(f"unknown {point} '{name}', expected one of: {', '.join(names(point))}")


def _loaded(point: Point, name: str, load: Callable[[], object]) -> Callable[..., object]:
    try:
        factory = load()
    except Exception as error:  # a foreign package may fail in any way; the user needs its name and reason
        raise ValueError(f"{point} '{name}' cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(factory):
        raise ValueError(f"{point} '{name}' is not a class or function but {type(factory).__name__}")
    return factory


def _options(factory: Callable[..., object]) -> tuple[set[str], bool]:
    """The names of the options, and whether others are taken too (``**kwargs``)."""
    parameters = inspect.signature(factory).parameters.values()
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = {parameter.name for parameter in parameters if parameter.kind in kinds}
    return named, any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
