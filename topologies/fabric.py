"""The fabric as a value: GPUs, PCIe switches, NICs, ports, switches and the links between them.

A fabric is immutable. Every link is one direction of a cable: a cable is two links that name
each other in ``reverse``. Parallel cables are separate links. Nodes are named by strings:

====================  ==========================================
``h3``                host 3
``h3g5``              GPU 5 of host 3
``h3s1``              PCIe switch 1 of host 3
``h3rc``              root complex of host 3: joins its PCIe switches, where GPUs talk over PCIe
``h3n1``              NIC 1 of host 3
``h3n1p0``            port 0 of that NIC: an interface with an address of its own
``tor2 agg7 core0``   switches
====================  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal

LinkKind = Literal["nvlink", "pcie", "host-tor", "tor-agg", "agg-core"]
Tier = Literal["tor", "agg", "core"]
IntraHost = Literal["instant", "nvlink", "pcie"]
"""What carries the traffic between GPUs of a host; ``instant`` takes no time."""
PcieQueues = Literal["ideal", "emulated"]
"""Whether PCIe between a GPU and its NIC delays network traffic; ``ideal`` links only record which flows share them."""

NETWORK_KINDS: frozenset[LinkKind] = frozenset({"host-tor", "tor-agg", "agg-core"})

Path = tuple[str, ...]
"""Names of the network links from a source port to a target port, in order."""


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a cable."""

    name: str
    """``tor0->agg1``; parallel cables are numbered: ``tor0->agg1.0``."""
    source: str
    """The node at which it begins: a port, a switch, or a node inside a host."""
    target: str
    """The node at which it ends."""
    kind: LinkKind
    """What it joins: ``host-tor``, ``tor-agg`` and ``agg-core`` carry packets."""
    capacity: float
    """bit/s of payload."""
    reverse: str
    """Name of the other direction of the cable."""


@dataclass(frozen=True, slots=True)
class Port:
    """An interface of a NIC, cabled to the ToR ``switch``."""

    name: str
    """``h3n1p0``: an interface with an address of its own."""
    host: str
    """Name of its host."""
    nic: str
    """Name of its NIC."""
    switch: str
    """Name of the ToR that it is cabled to."""


@dataclass(frozen=True, slots=True)
class Nic:
    """A NIC of a host."""

    name: str
    """``h3n1``."""
    host: str
    """Name of its host."""
    index: int
    """Its number within the host, from 0."""
    pcie_switch: str
    """The PCIe switch it is attached to: ``h3s1``."""
    ports: tuple[str, ...]
    """Names of its ports."""
    gpus: tuple[str, ...]
    """Names of the GPUs nearest to it."""


@dataclass(frozen=True, slots=True)
class Host:
    """A server."""

    name: str
    """``h3``."""
    index: int
    """Its number in the fabric, from 0."""
    gpus: tuple[str, ...]
    """Names of its GPUs: ``h3g0`` ..."""
    nics: tuple[str, ...]
    """Names of its NICs: ``h3n0`` ..."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A network switch."""

    name: str
    """``tor2``, ``agg7`` or ``core0``."""
    tier: Tier
    """``tor``, ``agg`` or ``core``."""
    index: int
    """Its number within the tier, from 0."""


class SwitchPaths:
    """The paths between ``switches`` over ``links_from`` (node -> its outgoing links), of the fabric called ``name``.

    A search from both ends, which meets in the middle; ports under one pair of switches share its paths, which are
    kept. So a fabric of hundreds of ToRs costs no more per pair than a small one.
    """

    def __init__(self, name: str, switches: Iterable[str], links_from: Mapping[str, Iterable[Link]]) -> None:
        self._name = name
        self._found: dict[tuple[str, str], tuple[Path, ...]] = {}
        self._next: dict[str, list[str]] = {switch: [] for switch in switches}
        self._cables: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for switch in self._next:
            for position, link in enumerate(links_from.get(switch, ())):
                if link.target not in self._next:
                    continue
                cables = self._cables.setdefault((switch, link.target), [])
                if not cables:
                    self._next[switch].append(link.target)
                cables.append((position, link.name))

    def between(self, source: str, target: str) -> tuple[Path, ...]:
        """Return all shortest paths from switch ``source`` to switch ``target``: links, one empty path if they are one.

        Raises ``KeyError`` for an unknown switch and ``ValueError`` if no path joins the two.
        """
        key = (source, target)
        if key not in self._found:
            self._found[key] = self._search(source, target)
        return self._found[key]

    def _search(self, source: str, target: str) -> tuple[Path, ...]:
        layers = self._layers(source, target)
        reached: dict[str, list[Path]] = {source: [()]}
        for allowed in layers[1:]:
            following: dict[str, list[Path]] = {}
            for node, prefixes in reached.items():
                for _, link, far in sorted(self._steps(node, allowed)):
                    following.setdefault(far, []).extend((*prefix, link) for prefix in prefixes)
            reached = following
        return tuple(reached[target])

    def _steps(self, node: str, allowed: set[str]) -> list[tuple[int, str, str]]:
        """The links of ``node`` to ``allowed`` nodes, each with its position among all links of ``node``."""
        return [(position, link, far) for far in allowed for position, link in self._cables.get((node, far), ())]

    def _layers(self, source: str, target: str) -> list[set[str]]:
        """Per distance from ``source``, the switches on shortest paths to ``target``."""
        ahead, back = [{source}], [{target}]
        seen_ahead, seen_back = {source}, {target}
        while not ahead[-1] & back[-1]:
            grown, seen = (ahead, seen_ahead) if len(ahead[-1]) <= len(back[-1]) else (back, seen_back)
            frontier = {far for node in grown[-1] for far in self._next[node]} - seen
            if not frontier:
                raise ValueError(f"no path from switch '{source}' to switch '{target}' in fabric {self._name}")
            seen |= frontier
            grown.append(frontier)
        layers = [*ahead[:-1], ahead[-1] & back[-1], *reversed(back[:-1])]
        # A cable is two links, so neighbours in one direction are neighbours in the other.
        for index in range(len(ahead) - 2, -1, -1):
            layers[index] = {node for node in layers[index] if not layers[index + 1].isdisjoint(self._next[node])}
        return layers


@dataclass(frozen=True)
class Fabric:
    """An immutable graph of GPUs, PCIe switches, NICs, ports and switches, and the links between them.

    All mappings are read-only and in a fixed order.
    """

    name: str
    """The kind, or a name of its own."""
    hosts: Mapping[str, Host]
    """Name -> host."""
    nics: Mapping[str, Nic]
    """Name -> NIC."""
    ports: Mapping[str, Port]
    """Name -> NIC port."""
    switches: Mapping[str, Switch]
    """Name -> switch."""
    links: Mapping[str, Link]
    """Name -> link, each direction of a cable by itself."""
    description: str = ""
    """The fabric in one line."""
    intra_host: IntraHost = "instant"
    """What carries traffic between GPUs of a host; ``instant`` takes no time."""
    pcie_queues: PcieQueues = "ideal"
    """Whether PCIe between a GPU and its NIC delays network traffic."""
    _paths: dict[tuple[str, str], tuple[Path, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        for name in ("hosts", "nics", "ports", "switches", "links"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[type[Fabric], tuple[object, ...]]:
        """Pickle only the constructor's values: read-only views cannot be pickled, derived values are recomputed."""
        parts = (dict(part) for part in (self.hosts, self.nics, self.ports, self.switches, self.links))
        return Fabric, (self.name, *parts, self.description, self.intra_host, self.pcie_queues)

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """Every GPU, host by host."""
        return tuple(gpu for host in self.hosts.values() for gpu in host.gpus)

    @cached_property
    def gpu_place(self) -> Mapping[str, int]:
        """GPU name -> its place in ``gpus``, from 0."""
        return {gpu: place for place, gpu in enumerate(self.gpus)}

    @cached_property
    def port_place(self) -> Mapping[str, int]:
        """NIC port name -> its place in ``ports``, from 0."""
        return {port: place for place, port in enumerate(self.ports)}

    @cached_property
    def switch_place(self) -> Mapping[str, int]:
        """Switch name -> its place in ``switches``, from 0."""
        return {switch: place for place, switch in enumerate(self.switches)}

    @cached_property
    def host_of_gpu(self) -> Mapping[str, str]:
        """GPU name -> host name."""
        return {gpu: host.name for host in self.hosts.values() for gpu in host.gpus}

    @cached_property
    def nic_of_gpu(self) -> Mapping[str, str]:
        """GPU name -> name of its nearest NIC."""
        return {gpu: nic.name for nic in self.nics.values() for gpu in nic.gpus}

    @cached_property
    def has_rail_switches(self) -> bool:
        """Whether the NICs of a host are on different ToRs, as where every rail has ToRs of its own."""
        return any(len({self._tors_of(nic) for nic in host.nics}) > 1 for host in self.hosts.values())

    def _tors_of(self, nic: str) -> tuple[str, ...]:
        return tuple(self.ports[port].switch for port in self.nics[nic].ports)

    @cached_property
    def links_from(self) -> Mapping[str, tuple[Link, ...]]:
        """Node name -> its outgoing network links, in order of name as generated."""
        out: dict[str, list[Link]] = {}
        for link in self.links.values():
            if link.kind in NETWORK_KINDS:
                out.setdefault(link.source, []).append(link)
        return {node: tuple(links) for node, links in out.items()}

    @cached_property
    def place_of_link(self) -> Mapping[str, int]:
        """Name of a network link -> its place, from 0, among those of ``links_from`` its source."""
        return {link.name: place for links in self.links_from.values() for place, link in enumerate(links)}

    @cached_property
    def cable_of(self) -> Mapping[str, str]:
        """Network link -> the one name of its cable: of its two directions, the one that comes first."""
        found: dict[str, str] = {}
        for link in self.network_links:
            found[link.name] = found.get(link.reverse, link.name)
        return found

    @cached_property
    def network_links(self) -> tuple[Link, ...]:
        """The links that carry packets: host to ToR, ToR to aggregation, aggregation to core, both directions."""
        return tuple(link for link in self.links.values() if link.kind in NETWORK_KINDS)

    @cached_property
    def nic_links(self) -> Mapping[str, tuple[Link, Link]]:
        """NIC name -> the PCIe links from its PCIe switch and to it, shared by all its GPUs and ports."""
        return {
            nic.name: (self.links[f"{nic.pcie_switch}->{nic.name}"], self.links[f"{nic.name}->{nic.pcie_switch}"])
            for nic in self.nics.values()
        }

    @cached_property
    def shaped_nics(self) -> tuple[str, ...]:
        """NICs whose PCIe links get queues in an emulation: those that all ports together could overload.

        No packet ever waits at a link that is as fast as all ports of its NIC.
        """
        if self.pcie_queues == "ideal":
            return ()
        ports = {nic.name: sum(self.uplink(port).capacity for port in nic.ports) for nic in self.nics.values()}
        return tuple(nic for nic, (out, _) in self.nic_links.items() if out.capacity < ports[nic])

    @cached_property
    def shaped_links(self) -> tuple[Link, ...]:
        """The links that an emulation gives queues: those of the network, and the PCIe links of some NICs."""
        return (*self.network_links, *(link for nic in self.shaped_nics for link in self.nic_links[nic]))

    @cached_property
    def _switch_paths(self) -> SwitchPaths:
        return SwitchPaths(self.name, self.switches, self.links_from)

    def without(self, links: Iterable[str]) -> Fabric:
        """Return the fabric without the cables of ``links``, both directions of each; itself if there are none.

        A port that loses its cable goes with it. ``KeyError`` for an unknown link.
        """
        gone = {name for link in links for name in (link, self.links[link].reverse)}
        if not gone:
            return self
        left = {name: link for name, link in self.links.items() if name not in gone}
        ports = {name: port for name, port in self.ports.items() if self.uplink(name).name not in gone}
        nics = dict(self.nics)
        for nic in {self.ports[name].nic for name in self.ports if name not in ports}:
            nics[nic] = replace(nics[nic], ports=tuple(port for port in nics[nic].ports if port in ports))
        return replace(self, nics=nics, ports=ports, links=left)

    def uplink(self, port: str) -> Link:
        """The link from a NIC port to its ToR."""
        return self.links_from[port][0]

    def candidate_paths(self, source: str, target: str) -> tuple[Path, ...]:
        """All shortest paths from port ``source`` to port ``target``, in a fixed order.

        Raises ``KeyError`` for an unknown port and ``ValueError`` if no path joins the two.
        """
        key = (source, target)
        if key not in self._paths:
            _require_two_ports(self, source, target)
            up, down = self.uplink(source), self.links[self.uplink(target).reverse]
            between = self._switch_paths.between(up.target, down.source)
            self._paths[key] = tuple((up.name, *path, down.name) for path in between)
        return self._paths[key]


def _require_two_ports(fabric: Fabric, source: str, target: str) -> None:
    for name in (source, target):
        if name not in fabric.ports:
            raise KeyError(f"no port named '{name}' in fabric {fabric.name}")
    if source == target:
        raise ValueError(f"source and target of a path are the same port '{source}'")
