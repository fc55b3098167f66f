"""Queues, policies, placers and capacities by name: the built-in ones, and those of other packages.

A package adds one by an entry point of the group ``testbed.queues``, ``testbed.policies``, ``testbed.placers``
or ``testbed.capacities``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, cast

from workloads.managers.capacities.inference import InferenceLoad
from workloads.managers.capacities.planned import Planned, Steady
from workloads.managers.guarded import GuardedPart
from workloads.managers.interfaces import Capacity, Placer, Policy, Queue
from workloads.managers.manager import Manager
from workloads.managers.placers.affinity import Affinity
from workloads.managers.placers.consolidated import Consolidated
from workloads.managers.placers.elastic_groups import ElasticGroups
from workloads.managers.placers.fewest_servers import EqualSplit, MostFree
from workloads.managers.placers.first_free import FirstFree
from workloads.managers.placers.hived import HiveD
from workloads.managers.placers.locality import Locality, Relaxed
from workloads.managers.placers.monkeytree.placer import MonkeyTree
from workloads.managers.placers.muri import MuriNet
from workloads.managers.placers.skew import SkewAware
from workloads.managers.policies.gandiva.gandiva import Gandiva
from workloads.managers.policies.gandiva.grow_shrink import GrowShrink
from workloads.managers.policies.gandiva.time_slicing import TimeSlices
from workloads.managers.policies.gang import Gang, Guarantee
from workloads.managers.policies.kubernetes import Kubernetes
from workloads.managers.policies.lyra import Lyra
from workloads.managers.policies.monkeytree import MonkeyTreeMoves
from workloads.managers.policies.optimus import Optimus
from workloads.managers.policies.philly import Philly
from workloads.managers.policies.sharing.muri_sharing import MuriSharing
from workloads.managers.policies.sharing.packing import Packing
from workloads.managers.policies.srtf import Srsf, Srtf
from workloads.managers.policies.tiresias import Tiresias
from workloads.managers.queues.capacity_scheduler import CapacityScheduler
from workloads.managers.queues.fair import Fair
from workloads.managers.queues.fifo import Fifo, FifoBackfill
from workloads.managers.queues.priority import Priority
from workloads.plugin_errors import PluginCode
from workloads.plugins import Factory, Options, PartDescription, Plugins

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
        "queue": {part.name: part for part in (Fifo, FifoBackfill, Fair, CapacityScheduler, Priority)},
        "policy": {
            part.name: part
            for part in (
                Gang,
                Guarantee,
                Srtf,
                Srsf,
                Philly,
                Tiresias,
                TimeSlices,
                Gandiva,
                Packing,
                GrowShrink,
                Optimus,
                Lyra,
                Kubernetes,
                MuriSharing,
                MonkeyTreeMoves,
            )
        },
        "placer": {
            part.name: part
            for part in (
                FirstFree,
                Consolidated,
                Affinity,
                ElasticGroups,
                HiveD,
                MuriNet,
                Locality,
                Relaxed,
                SkewAware,
                MostFree,
                EqualSplit,
                MonkeyTree,
            )
        },
        "capacity": {part.name: part for part in (Steady, Planned, InferenceLoad)},
    }
)


_PARTS: Final[Mapping[Point, Plugins]] = MappingProxyType(
    {
        point: Plugins(point, group, _BUILT_IN[point], ("name", "summary", _METHODS[point]))
        for point, group in GROUPS.items()
    }
)


NO_PARTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "drf": "there is no 'drf': GPUs are the only resource here, and dominant resource fairness of one resource is "
        "max-min fairness, which is the queue fair"
    }
)
"""Names that one may look for -> why there is nothing of that name, and what to use."""


def is_built_in(point: Point, name: str) -> bool:
    """Whether the part ``name`` does not come from another package."""
    return name in _BUILT_IN[point]


def all_built_in(queue: str, policy: str, placer: str, capacity: str) -> bool:
    """Whether no part of a manager comes from another package."""
    parts: Mapping[Point, str] = {"queue": queue, "policy": policy, "placer": placer, "capacity": capacity}
    return all(is_built_in(point, name) for point, name in parts.items())


def names(point: Point) -> tuple[str, ...]:
    """Return the names of all parts for a plug-in point, sorted."""
    return _PARTS[point].names()


def describe(point: Point, name: str) -> PartDescription:
    """Return the part ``name`` for a plug-in point in words."""
    return _PARTS[point].describe(name)


def code_of(point: Point, name: str) -> PluginCode | None:
    """Return where the code of the part ``name`` is; None if it is built in or there is none."""
    return _PARTS[point].code_of(name)


def create(point: Point, name: str, options: Options | None = None, seed: int | None = None) -> object:
    """Return the part ``name`` with its ``options``; ``seed`` goes to a part that takes one.

    Raises ``ValueError``, one line, for an unknown name or option, or an option's bad value.
    """
    if name in NO_PARTS and name not in names(point):
        raise ValueError(NO_PARTS[name])
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
    parts = {point: _guarded(point, name, (options or {}).get(point), seed) for point, name in chosen.items()}
    return Manager(
        cast("Queue", parts["queue"]),
        cast("Policy", parts["policy"]),
        cast("Placer", parts["placer"]),
        cast("Capacity", parts["capacity"]),
    )


def _guarded(point: Point, name: str, options: Options | None, seed: int | None) -> object:
    """A part that names its file and line where it fails, if it comes from another package."""
    part, code = create(point, name, options, seed), code_of(point, name)
    return part if code is None else GuardedPart(part, code)


def summary(point: Point, name: str) -> str:
    """Return a part's summary, one line, "" if it has none; ``ValueError`` if it cannot be loaded."""
    return " ".join(str(getattr(_PARTS[point].find(name), "summary", "")).split())
