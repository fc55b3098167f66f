"""ECMP as switches do it: a pure five-tuple hash at every hop, with a seed and a salt per switch.

The packet-level and the flow-level engine use the same function, so both choose the same paths.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b

from controller.decision import ClusterView, Decision
from topologies.addressing import address_of
from topologies.fabric import Fabric, Path
from workloads.job import Flow

_TCP = 6


def hash_at(salt: int, five_tuple: str, seed: int, choices: int) -> int:
    """Return which of ``choices`` equal-cost next hops a switch takes for ``five_tuple``: 0 .. choices - 1.

    Its ``salt`` is its place in the fabric: with the same one all switches would hash alike and polarise traffic.
    """
    digest = blake2b(f"{seed}|{salt}|{five_tuple}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % choices


def five_tuple_of(fabric: Fabric, flow: Flow) -> str:
    """Return source address, target address, protocol, source port and target port of ``flow`` as one string."""
    source, target = address_of(fabric, flow.source), address_of(fabric, flow.target)
    return f"{source},{target},{_TCP},{flow.source_port},{flow.target_port}"


def ecmp_path(fabric: Fabric, flow: Flow, seed: int) -> Path:
    """Return the path that per-switch hashing gives ``flow``: one of its candidates, chosen hop by hop."""
    remaining = fabric.candidate_paths(flow.source, flow.target)
    five_tuple = five_tuple_of(fabric, flow)
    for hop in range(len(remaining[0])):
        next_links = tuple(dict.fromkeys(path[hop] for path in remaining))
        if len(next_links) > 1:
            salt = fabric.switch_place[fabric.links[next_links[0]].source]
            taken = next_links[hash_at(salt, five_tuple, seed, len(next_links))]
            remaining = tuple(path for path in remaining if path[hop] == taken)
    return remaining[0]


def ecmp_paths(fabric: Fabric, flows: Iterable[Flow], seed: int) -> dict[str, Path]:
    """Return flow id -> :func:`ecmp_path` of each of ``flows``."""
    return {flow.id: ecmp_path(fabric, flow, seed) for flow in flows}


def with_default_paths(view: ClusterView, decision: Decision) -> Decision:
    """Return ``decision`` with the ECMP path for every flow that has no path and is not hashed by the switches."""
    settled = decision.paths.keys() | set(decision.hashed)
    missing = ecmp_paths(view.fabric, (flow for flow in view.flows if flow.id not in settled), view.seed)
    return replace(decision, paths={**decision.paths, **missing}) if missing else decision
