"""Paths by source port: which TCP source port makes ECMP take which path (Crux section 5).

No rule per flow is needed then: a connection is opened from a port that the hashes of the switches
send along the decided path. The hash is known (:func:`controller.ecmp_hash.hash_at`), so ports are
tried by computing it, where the paper sends probe packets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from controller.ecmp_hash import five_tuple_of, hash_at
from topologies.fabric import Fabric, Path
from workloads.connections import FIRST_SOURCE_PORT, SOURCE_PORTS
from workloads.job import Flow

PORTS: Final = range(FIRST_SOURCE_PORT, FIRST_SOURCE_PORT + SOURCE_PORTS)
"""Source ports that are tried: those from which jobs draw theirs, upwards from the flow's own, then from the start."""

HashTree = int | tuple[int, "tuple[HashTree, ...]"]
"""The index of a path, or the salt of a switch and what follows on each of its equal-cost next links."""


def hash_tree(fabric: Fabric, paths: Sequence[Path]) -> HashTree:
    """Return ``paths`` (all of one source and target, at least one) as the choices that switches make on the way."""
    return _tree(fabric, tuple(enumerate(paths)), 0)


def _tree(fabric: Fabric, paths: Sequence[tuple[int, Path]], hop: int) -> HashTree:
    if hop == len(paths[0][1]):
        return paths[0][0]
    ways: dict[str, list[tuple[int, Path]]] = {}
    for number, path in paths:
        ways.setdefault(path[hop], []).append((number, path))
    if len(ways) == 1:
        return _tree(fabric, paths, hop + 1)
    salt = fabric.switch_place[fabric.links[next(iter(ways))].source]
    return salt, tuple(_tree(fabric, rest, hop + 1) for rest in ways.values())


def hashed_index(tree: HashTree, five_tuple: str, seed: int) -> int:
    """Return the index of the path that the switches choose: that of :func:`controller.schedulers.ecmp.ecmp_path`."""
    while not isinstance(tree, int):
        salt, ways = tree
        tree = ways[hash_at(salt, five_tuple, seed, len(ways))]
    return tree


def probe_ports(fabric: Fabric, flow: Flow, seed: int, taken_ports: Collection[int]) -> Mapping[Path, int]:
    """Return candidate path of ``flow`` -> a TCP source port whose ECMP path it is, in the order of candidates.

    The flow's own port where it is free, else the first free one of :data:`PORTS` after it.
    ``taken_ports`` are in use at the flow's source. A path that no free port takes is left out.
    """
    paths = fabric.candidate_paths(flow.source, flow.target)
    index_of = _index_by_port(fabric, flow, hash_tree(fabric, paths), seed)
    found: dict[int, int] = {}
    for port in _free_ports(flow.source_port, taken_ports):
        found.setdefault(index_of(port), port)
        if len(found) == len(paths):
            break
    return {path: found[number] for number, path in enumerate(paths) if number in found}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A flow and the path it shall take: the one at ``index`` of those that made ``tree``."""

    flow: Flow
    tree: HashTree
    index: int


def source_ports(fabric: Fabric, wanted: Sequence[Wanted], seed: int, in_force: Mapping[str, int]) -> dict[str, int]:
    """Return flow id -> TCP source port that takes the wanted path.

    A flow keeps its port of ``in_force`` (flow id -> port) where that takes the path. At one NIC port no
    source port is given twice, nor one that another of the flows still has in force, so that no two
    connections have the same five-tuple. Raises ``ValueError`` if no free port takes a path.
    """
    taken: dict[str, set[int]] = {}
    for want in wanted:
        if want.flow.id in in_force:
            taken.setdefault(want.flow.source, set()).add(in_force[want.flow.id])
    ports: dict[str, int] = {}
    for want in wanted:
        flow, index_of = want.flow, _index_by_port(fabric, want.flow, want.tree, seed)
        if flow.id in in_force and index_of(in_force[flow.id]) == want.index:
            ports[flow.id] = in_force[flow.id]
            continue
        used = taken.setdefault(flow.source, set())
        found = next((port for port in _free_ports(flow.source_port, used) if index_of(port) == want.index), None)
        if found is None:
            raise ValueError(f"no free source port at '{flow.source}' takes flow '{flow.id}' along its path")
        used.add(found)
        ports[flow.id] = found
    return ports


def _index_by_port(fabric: Fabric, flow: Flow, tree: HashTree, seed: int) -> Callable[[int], int]:
    before, _, after = five_tuple_of(fabric, replace(flow, source_port=-1)).partition(",-1,")
    return lambda port: hashed_index(tree, f"{before},{port},{after}", seed)


def _free_ports(own: int, taken: Collection[int]) -> Iterator[int]:
    """The flow's own port and those of :data:`PORTS` after it, less those taken."""
    first = own if own in PORTS else PORTS.start
    order = chain((own,), range(first, PORTS.stop), range(PORTS.start, first))
    return (port for port in order if port not in taken)
