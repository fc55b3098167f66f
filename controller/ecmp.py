"""ECMP as switches do it: a pure five-tuple hash at every hop, with a seed and a salt per switch.

The same function serves the packet-level and the flow-level engine, so that both choose the same
paths. ``ecmp-switch`` leaves the choice to the select groups of the switches instead.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import ClassVar

from controller.decision import ClusterView, Decision, Event
from topologies.addressing import address_of
from topologies.fabric import Fabric, Path
from workloads.job import Flow

_TCP = 6


def hash_at(switch: str, five_tuple: str, seed: int, choices: int) -> int:
    """Return which of ``choices`` equal-cost next hops ``switch`` takes for ``five_tuple``: 0 .. choices - 1.

    The name of the switch is its salt: switches that hash alike would polarise.
    """
    digest = blake2b(f"{seed}|{switch}|{five_tuple}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % choices


def five_tuple_of(fabric: Fabric, flow: Flow) -> str:
    """Return source address, target address, protocol, source port and target port of ``flow`` as one text."""
    source, target = address_of(fabric, flow.source), address_of(fabric, flow.target)
    return f"{source},{target},{_TCP},{flow.source_port},{flow.target_port}"


def ecmp_path(fabric: Fabric, flow: Flow, seed: int) -> Path:
    """Return the path that per-switch hashing gives ``flow``: one of its candidates, chosen hop by hop."""
    remaining = fabric.candidate_paths(flow.source, flow.target)
    five_tuple = five_tuple_of(fabric, flow)
    for hop in range(len(remaining[0])):
        next_links = tuple(dict.fromkeys(path[hop] for path in remaining))
        if len(next_links) > 1:
            switch = fabric.links[next_links[0]].source
            taken = next_links[hash_at(switch, five_tuple, seed, len(next_links))]
            remaining = tuple(path for path in remaining if path[hop] == taken)
    return remaining[0]


def with_default_paths(view: ClusterView, decision: Decision) -> Decision:
    """Return ``decision`` with the ECMP path for every flow that has neither a path nor the switches' own hash."""
    settled = decision.paths.keys() | set(decision.hashed)
    missing = {flow.id: ecmp_path(view.fabric, flow, view.seed) for flow in view.flows if flow.id not in settled}
    return replace(decision, paths={**decision.paths, **missing}) if missing else decision


class Ecmp:
    """The baseline: every flow on its hashed path, all at the lowest level. ``seed``: instead of the view's."""

    name: ClassVar[str] = "ecmp"
    summary: ClassVar[str] = "seeded five-tuple hash per switch, one level for all"
    decides: ClassVar[tuple[str, ...]] = ("paths",)
    source: ClassVar[str] = "RFC 2992, November 2000"

    def __init__(self, *, seed: int | None = None) -> None:
        self._seed = seed

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a path per flow and nothing else."""
        seed = view.seed if self._seed is None else self._seed
        return Decision(paths={flow.id: ecmp_path(view.fabric, flow, seed) for flow in view.flows})


class EcmpSwitch:
    """ECMP by the select groups of the switches: their bucket choices are read back, not decided."""

    name: ClassVar[str] = "ecmp-switch"
    summary: ClassVar[str] = "the switches' own select groups choose among equal-cost next hops, one level for all"
    decides: ClassVar[tuple[str, ...]] = ("paths",)
    source: ClassVar[str] = "OpenFlow 1.3, groups of type select"

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the path of flows that have only one, and name the others as hashed by the switches."""
        paths: dict[str, Path] = {}
        hashed: list[str] = []
        for flow in view.flows:
            candidates = view.fabric.candidate_paths(flow.source, flow.target)
            if len(candidates) == 1:
                paths[flow.id] = candidates[0]
            else:
                hashed.append(flow.id)
        return Decision(paths=paths, hashed=tuple(hashed))
