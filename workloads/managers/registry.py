"""Queues, policies, placers and capacities by name: the built-in ones, and those of other packages.

A package adds one by an entry point of the group ``testbed.queues``, ``testbed.policies``, ``testbed.placers``
or ``testbed.capacities``.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from workloads.managers.locality import Locality
from workloads.managers.lyra import Lyra
from workloads.managers.manager import Manager
from workloads.managers.muri import MuriNet
from workloads.managers.none import FirstFree
from workloads.managers.optimus import Optimus
from workloads.managers.packing import Packing
from workloads.managers.philly import Philly
from workloads.managers.points import Capacity, Placer, Policy, Queue
from workloads.managers.policies import Gang, Guarantee
from workloads.managers.queues import Fifo, FifoBackfill
from workloads.managers.sharing import MuriSharing
from workloads.managers.shortest import Srsf, Srtf
from workloads.managers.skew import SkewAware
from workloads.managers.tiresias import Tiresias
from workloads.plugins import Factory, Options, Plugins

Point = Literal["queue", "policy", "placer", "capacity"]

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
_BUILT_IN: Final[Mapping[Point, Mapping[str, Factory]]] = MappingProxyType(
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


_PARTS: Final[Mapping[Point, Plugins]] = MappingProxyType(
    {
        point: Plugins(point, group, _BUILT_IN[point], ("name", "summary", _METHODS[point]))
        for point, group in GROUPS.items()
    }
)


def names(point: Point) -> tuple[str, ...]:
    """Return the names of all parts for a plug-in point, sorted."""
    return _PARTS[point].names()


def create(point: Point, name: str, options: Options | None = None, seed: int | None = None) -> object:
    """Return the part ``name`` with its ``options``; ``seed`` goes to a part that takes one.

    Raises ``ValueError``, one line, for an unknown name or option, or an option's bad value.
    """
    return _PARTS[point].create(name, options, seed)


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
    return " ".join(str(getattr(_PARTS[point].find(name), "summary", "")).split())
