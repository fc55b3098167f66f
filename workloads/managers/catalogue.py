"""Cluster managers by the names of the systems they follow, and the queue, policy and placer each is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from topologies.input.spelling import expectation
from workloads.managers.manager import Manager
from workloads.managers.registry import NO_PARTS, Point, manager
from workloads.plugins import Options


@dataclass(frozen=True)
class Composition:
    """The parts of a manager, by name, and their options."""

    placer: str = "consolidated"
    queue: str = "fifo-backfill"
    policy: str = "gang"
    options: Mapping[Point, Options] = field(default_factory=dict)


MANAGERS: Final[Mapping[str, Composition]] = MappingProxyType(
    {
        "none": Composition("none"),
        "fifo": Composition(queue="fifo"),
        "consolidated": Composition(),
        "fair": Composition(queue="fair"),
        "capacity-scheduler": Composition(queue="capacity-scheduler"),
        "kubernetes": Composition("none", "fifo-backfill", "kubernetes"),
        "srtf": Composition(policy="srtf"),
        "srsf": Composition(policy="srsf"),
        "philly": Composition("locality", "fair", "philly"),
        "tiresias": Composition("skew", policy="tiresias"),
        "tiresias-rounds": Composition("skew", policy="tiresias", options={"policy": {"round_s": 60.0}}),
        "gandiva": Composition("affinity", policy="gandiva"),
        "gandiva-slicing": Composition(policy="time-slices"),
        "gandiva-packing": Composition(policy="packing"),
        "gandiva-growing": Composition(policy="grow-shrink"),
        "optimus": Composition("equal-split", policy="optimus"),
        "lyra": Composition("elastic-groups", policy="lyra", options={"policy": {"resize_s": 30.0}}),
        "hived": Composition("hived", "priority", "guarantee"),
        "monkeytree": Composition("monkeytree", policy="monkeytree"),
        "muri": Composition("muri"),
        "muri-s": Composition(policy="muri-sharing"),
        "muri-l": Composition(policy="muri-sharing", options={"policy": {"order": "attained"}}),
    }
)
"""Name -> parts. ``none`` is the placement that Crux calls None: the first free GPUs."""


def unknown_manager(name: str) -> str:
    """Return in one line that there is no manager called ``name``, and what there is."""
    return NO_PARTS.get(name, f"unknown manager '{name}', {expectation(name, sorted(MANAGERS))}")


def named_manager(name: str, seed: int | None = None) -> Manager:
    """Return the manager called ``name``; ``ValueError``, one line, if there is none."""
    if name not in MANAGERS:
        raise ValueError(unknown_manager(name))
    parts = MANAGERS[name]
    return manager(parts.placer, parts.queue, parts.policy, options=parts.options, seed=seed)
