"""Node-link JSON, as ``networkx.node_link_data`` writes and ``node_link_graph`` reads it, of hosts and switches.

An undirected graph; every edge is a cable, parallel ones are separate edges of a multigraph. ::

    {"directed": false, "multigraph": true,
     "graph": {"name": "small"},
     "nodes": [{"id": "h0", "kind": "host", "gpus": 8, "nics": 4}, {"id": "leaf", "kind": "switch"}, ..],
     "edges": [{"source": "h0", "target": "leaf", "rate": "200Gbps", "nic": 0}, ..]}

``links`` may stand for ``edges``, as older versions of networkx write it; ``rate`` may be a number of bit/s. Edges of a
host without ``nic`` are dealt to its NICs in order, as many to each. A host without ``nics`` has one for each of its
edges. Switches are ToRs, aggregation or core by their distance from the hosts.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from topologies.fabric import Fabric
from topologies.formats.errors import FabricFileError
from topologies.formats.json_lines import Location, line_of
from topologies.formats.wiring import AS_USUAL, Cable, Inside, WiredHost, WiringError, build, tiers_of
from topologies.hosts import NVLINK_RATE, HostShape
from topologies.limits import COUNT, FABRIC_FILE_BYTES, HOSTS, LINKS, LimitError, line_of_damage, read_text
from topologies.units import parse_rate

EXPECTED: Final = "node-link JSON of networkx"
_CONVERTED: Final[Mapping[str, str]] = {
    form: f"networkx converts it: json.dump(node_link_data({reader}(FILE), edges='edges'), file)"
    for form, reader in (("GraphML", "read_graphml"), ("GML", "read_gml"))
}
"""Form of a graph that is not read -> how it becomes one that is."""
MOST_PER_HOST: Final = 1024
"""GPUs or NICs of a host."""


def read(path: Path, inside: Inside = AS_USUAL) -> Fabric:
    """Return the fabric of a node-link file; raises :class:`FabricFileError` naming the line that is wrong."""
    try:
        text = read_text(path, FABRIC_FILE_BYTES)
        data = json.loads(text, parse_int=_whole)
    except UnicodeDecodeError as error:
        raise FabricFileError(str(path), line_of_damage(error), "not UTF-8 text", EXPECTED) from None
    except json.JSONDecodeError as error:
        if form := _other_form(text):
            raise FabricFileError(str(path), 1, f"this is {form}", f"{EXPECTED}; {_CONVERTED[form]}") from None
        raise FabricFileError(str(path), error.lineno, f"not JSON ({error.msg})", EXPECTED) from None
    except RecursionError:
        raise FabricFileError(str(path), 1, "too deeply nested", EXPECTED) from None
    except LimitError as error:
        raise FabricFileError(str(path), None, str(error), f"a file of at most {FABRIC_FILE_BYTES} bytes") from None
    except OSError as error:
        raise FabricFileError(str(path), None, f"cannot be read ({error.strerror})", EXPECTED) from None
    return _Reader(str(path), text, data, inside).fabric()


def _other_form(text: str) -> str:
    """GraphML or GML where the text begins like it; empty otherwise."""
    begin = text.lstrip("\ufeff \t\n")[:2000]
    if begin.startswith("<") and "<graphml" in begin:
        return "GraphML"
    words = " ".join(line for line in begin.split("\n") if not line.startswith(("#", "Creator", "Version"))).split()
    return "GML" if words[:2] == ["graph", "["] or words[:1] == ["graph["] else ""


def _whole(digits: str) -> float:
    return int(digits) if len(digits) < 19 else math.inf


class _Reader:
    def __init__(self, file: str, text: str, data: object, inside: Inside) -> None:
        self._file = file
        self._text = text
        self._data: Mapping[str, Any] = data if isinstance(data, dict) else self._fail((), "no JSON object", EXPECTED)
        self._inside = inside
        self._edges = "links" if "links" in self._data and "edges" not in self._data else "edges"

    def fabric(self) -> Fabric:
        if self._data.get("directed"):
            self._fail(("directed",), "a directed graph", "an undirected one, where an edge is a cable")
        hosts, switches = self._nodes()
        between: list[Cable] = []
        of_host: dict[str, list[tuple[int, Cable, int | None]]] = {name: [] for name in hosts}
        for index, edge in enumerate(self._entries(self._edges)):
            self._sort(index, edge, frozenset(switches), of_host, between)
        wired = [self._host(hosts[name], cables, len(hosts)) for name, cables in of_host.items()]
        if not wired:
            self._fail(("nodes",), "no node of kind host", "at least one")
        graph = self._data.get("graph")
        name = graph.get("name") if isinstance(graph, dict) else None
        try:
            tiers = tiers_of(wired, switches, between)
            about = f"{len(wired)} hosts, {len(switches)} switches"
            return build(str(name)[:64] if name else "node-link", about, wired, tiers, between)
        except WiringError as error:
            self._fail((self._edges, error.line) if error.line is not None else ("nodes",), error.what, error.expected)
        except ValueError as error:
            self._fail((), str(error), "a smaller fabric")

    def _fail(self, location: Location, what: str, expected: str) -> NoReturn:
        raise FabricFileError(self._file, line_of(self._text, location), what, expected)

    def _entries(self, key: str) -> Iterator[Mapping[str, Any]]:
        entries = self._data.get(key)
        if not isinstance(entries, list):
            self._fail((key,), f"no list '{key}'", "nodes and edges")
        if len(entries) > LINKS:
            self._fail((key,), f"{len(entries)} {key}", f"at most {LINKS}")
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict):
                self._fail((key, index), f"an entry of '{key}' is {entry!r:.60}", "an object")
            yield entry

    def _nodes(self) -> tuple[dict[str, tuple[int, Mapping[str, Any]]], list[str]]:
        """Id of each host -> its position and entry; ids of the switches."""
        hosts: dict[str, tuple[int, Mapping[str, Any]]] = {}
        switches: dict[str, None] = {}
        for index, node in enumerate(self._entries("nodes")):
            name, kind = str(node.get("id")), node.get("kind")
            if "id" not in node or name in hosts or name in switches:
                self._fail(("nodes", index), f"node {name!r} is there twice or has no id", "an id for each")
            if kind == "host":
                hosts[name] = (index, node)
            elif kind in ("switch", "tor", "agg", "core"):
                switches[name] = None
            else:
                self._fail(("nodes", index), f"node {name!r} has kind {kind!r}", "host or switch")
        if len(hosts) > HOSTS:
            self._fail(("nodes",), f"{len(hosts)} hosts", f"at most {HOSTS}")
        return hosts, list(switches)

    def _sort(
        self,
        index: int,
        edge: Mapping[str, Any],
        switches: frozenset[str],
        of_host: Mapping[str, list[tuple[int, Cable, int | None]]],
        between: list[Cable],
    ) -> None:
        ends = [str(edge.get(end)) for end in ("source", "target")]
        unknown = next((end for end in ends if end not in switches and end not in of_host), None)
        if unknown is not None:
            self._fail((self._edges, index), f"unknown node {unknown!r}", "source and target to be ids of nodes")
        one, other = ends if ends[0] in of_host else ends[::-1]
        if (one in of_host and other in of_host) or one == other:
            self._fail((self._edges, index), f"an edge joins {one!r} and {other!r}", "a switch at one end at least")
        cable = Cable(one, other, self._rate(index, edge.get("rate")), index)
        if one in of_host:
            of_host[one].append((index, cable, self._nic(index, edge)))
        else:
            between.append(cable)

    def _rate(self, index: int, rate: object) -> float:
        found = math.nan
        if isinstance(rate, str):
            with contextlib.suppress(ValueError):
                found = parse_rate(rate)
        elif isinstance(rate, int | float) and not isinstance(rate, bool):
            found = float(rate)
        if not 1.0 <= found <= 1e18:
            self._fail((self._edges, index), f"rate is {rate!r:.60}", "a rate such as 200Gbps, or bit/s")
        return found

    def _nic(self, index: int, edge: Mapping[str, Any]) -> int | None:
        return self._count((self._edges, index), "nic", edge.get("nic"), 0) if "nic" in edge else None

    def _count(self, location: Location, key: str, value: object, least: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= min(COUNT, MOST_PER_HOST):
            self._fail(location, f"{key} is {value!r:.60}", f"a whole number from {least} to {MOST_PER_HOST}")
        return value

    def _host(
        self, host: tuple[int, Mapping[str, Any]], cables: Sequence[tuple[int, Cable, int | None]], hosts: int
    ) -> WiredHost:
        place, node = host
        location: Location = ("nodes", place)
        if not cables:
            self._fail(location, f"host {node['id']!r} has no edge", "a cable to a switch at least")
        gpus = self._count(location, "gpus", node.get("gpus", 8), 1)
        count = self._count(location, "nics", node.get("nics", len(cables)), 1)
        nics = self._dealt(location, node, cables, count)
        nvlink = node.get("nvlink_rate", NVLINK_RATE)
        try:
            shape = HostShape(
                hosts,
                gpus,
                count,
                max(len(of_nic) for of_nic in nics),
                nics[0][0].rate,
                self._inside.pcie_rate,
                nvlink if isinstance(nvlink, int | float) and not isinstance(nvlink, bool) else math.nan,
                self._inside.intra_host,
                self._inside.pcie_queues,
            )
        except ValueError as error:
            self._fail(location, f"host {node['id']!r}: {error}", "another host")
        return WiredHost(shape, nics)

    def _dealt(
        self, location: Location, node: Mapping[str, Any], cables: Sequence[tuple[int, Cable, int | None]], count: int
    ) -> tuple[tuple[Cable, ...], ...]:
        """The cables of each NIC: those that name it, or as many in order."""
        named = [nic for _, _, nic in cables if nic is not None]
        if named and len(named) < len(cables):
            self._fail(location, f"some edges of host {node['id']!r} have a nic and some not", "all or none")
        if not named and len(cables) % count:
            what = f"{len(cables)} edges of host {node['id']!r} on {count} NICs"
            self._fail(location, what, "as many for each, or a nic in each edge")
        per_nic = len(cables) // count
        found: list[list[Cable]] = [[] for _ in range(count)]
        for position, (index, cable, nic) in enumerate(cables):
            number = position // per_nic if nic is None else nic
            if number >= count:
                self._fail((self._edges, index), f"nic is {number}", f"0 to {count - 1}, a NIC of host {node['id']!r}")
            found[number].append(cable)
        bare = next((number for number, of_nic in enumerate(found) if not of_nic), None)
        if bare is not None:
            self._fail(location, f"NIC {bare} of host {node['id']!r} has no edge", "a cable for every NIC")
        return tuple(tuple(of_nic) for of_nic in found)


def written(fabric: Fabric) -> dict[str, Any]:
    """Return ``fabric`` as node-link data; :func:`read` gives the same hosts, switches and cables back."""
    nodes: list[dict[str, Any]] = []
    for host in fabric.hosts.values():
        nvlink = next((link.capacity for link in fabric.links.values() if link.source == host.gpus[0]), NVLINK_RATE)
        nodes.append(
            {"id": host.name, "kind": "host", "gpus": len(host.gpus), "nics": len(host.nics), "nvlink_rate": nvlink}
        )
    nodes += [{"id": switch.name, "kind": "switch", "tier": switch.tier} for switch in fabric.switches.values()]
    edges: list[dict[str, Any]] = []
    for port in fabric.ports.values():
        rate = fabric.uplink(port.name).capacity
        nic = fabric.nics[port.nic].index
        edges.append({"source": port.host, "target": port.switch, "key": len(edges), "rate": rate, "nic": nic})
    seen: set[str] = set()
    for link in fabric.network_links:
        if link.kind != "host-tor" and link.reverse not in seen:
            seen.add(link.name)
            edges.append({"source": link.source, "target": link.target, "key": len(edges), "rate": link.capacity})
    graph = {"name": fabric.name, "description": fabric.description}
    return {"directed": False, "multigraph": True, "graph": graph, "nodes": nodes, "edges": edges}
