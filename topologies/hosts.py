"""The inside of hosts, and the builder that all fabric generators share.

A host is drawn as in Crux section 6.1, figure 18: every NIC is attached to a PCIe switch of its own,
the host's GPUs are spread evenly over these switches, and NVLink joins all GPUs of a host. Where
GPUs of a host talk over PCIe, its PCIe switches are joined by a root complex.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

from topologies.fabric import Fabric, Host, IntraHost, Link, LinkKind, Nic, PcieQueues, Port, Switch, Tier
from topologies.limits import HOSTS, LINKS, PORTS_PER_HOST, SWITCHES

PCIE_RATE: Final = 256e9
"""bit/s of PCIe 4.0 x16, one direction."""

NVLINK_RATE: Final = 2400e9
"""bit/s of the NVLinks of one GPU, one direction (A100: 300 GB/s)."""


@dataclass(frozen=True, slots=True)
class HostShape:
    """The hosts of a fabric.

    Raises ``ValueError`` naming the parameter if no such host can be built.
    """

    hosts: int
    """How many there are, all equal."""
    gpus: int
    """GPUs of a host."""
    nics: int
    """NICs of a host; its GPUs divide evenly over them."""
    ports_per_nic: int
    """Ports of a NIC, each cabled to a ToR."""
    port_rate: float
    """bit/s of a port, each direction."""
    pcie_rate: float = PCIE_RATE
    """bit/s of PCIe between GPU, PCIe switch and NIC, each direction."""
    nvlink_rate: float = NVLINK_RATE
    """bit/s of a GPU's NVLinks, each direction."""
    intra_host: IntraHost = "instant"
    """What carries traffic between GPUs of a host."""
    pcie_queues: PcieQueues = "ideal"
    """Whether PCIe between GPUs and NICs delays network traffic."""

    def __post_init__(self) -> None:
        require_counts(
            hosts=self.hosts, gpus_per_host=self.gpus, nics_per_host=self.nics, ports_per_nic=self.ports_per_nic
        )
        require_rates(port_rate=self.port_rate, pcie_rate=self.pcie_rate, nvlink_rate=self.nvlink_rate)
        require_multiple("gpus_per_host", self.gpus, self.nics, "NICs of a host")
        require_choice("intra_host", self.intra_host, get_args(IntraHost))
        require_choice("pcie_queues", self.pcie_queues, get_args(PcieQueues))
        if self.hosts > HOSTS:
            raise ValueError(f"hosts must be at most {HOSTS}, not {self.hosts}")
        if self.nics * self.ports_per_nic > PORTS_PER_HOST:
            raise ValueError(
                f"ports_per_nic must leave a host at most {PORTS_PER_HOST} ports, "
                f"not {self.nics} NICs x {self.ports_per_nic}"
            )
        if self.hosts * self.links > LINKS:
            links = f"not {self.hosts} hosts x {self.links}"
            raise ValueError(f"hosts must have at most {LINKS} links inside and to ToRs together, {links}")

    @property
    def links(self) -> int:
        """Directed links inside one host and to its ToRs."""
        to_root = self.nics if self.intra_host == "pcie" else 0
        return 2 * (2 * self.gpus + self.nics + to_root + self.nics * self.ports_per_nic)

    @property
    def gpus_per_nic(self) -> int:
        """GPUs that share one PCIe switch and one NIC."""
        return self.gpus // self.nics


def require_counts(**counts: int) -> None:
    """Raise ``ValueError`` naming the first of ``counts`` that is below 1."""
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, not {count}")


def require_rates(**rates: float) -> None:
    """Raise ``ValueError`` naming the first of ``rates`` (bit/s) that is not a positive number."""
    for name, rate in rates.items():
        if not (math.isfinite(rate) and rate > 0):
            raise ValueError(f"{name} must be above 0 bit/s, not {rate:g}")


def require_multiple(name: str, value: int, divisor: int, over: str) -> None:
    """Raise ``ValueError`` unless ``value``, called ``name``, divides evenly over ``divisor`` of ``over``."""
    if value % divisor:
        raise ValueError(f"{name} must divide evenly over the {divisor} {over}, {value} does not")


def require_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise ``ValueError`` unless ``value``, called ``name``, is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be {', '.join(choices[:-1])} or {choices[-1]}, not '{value}'")


class FabricBuilder:
    """Collects nodes and links; ``build`` freezes them. A node exists before a link names it."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self._nics: dict[str, Nic] = {}
        self._ports: dict[str, Port] = {}
        self._switches: dict[str, Switch] = {}
        self._links: dict[str, Link] = {}

    def add_switches(self, tier: Tier, count: int) -> tuple[str, ...]:
        """Add switches ``<tier>0`` .. and return their names."""
        if len(self._switches) + count > SWITCHES:
            raise ValueError(f"switches must be at most {SWITCHES} together, not {len(self._switches) + count} or more")
        names = tuple(f"{tier}{index}" for index in range(count))
        for index, name in enumerate(names):
            self._switches[name] = Switch(name, tier, index)
        return names

    def add_host(self, shape: HostShape, index: int, tor_of_port: Sequence[str]) -> None:
        """Add host ``index``; port ``p`` of each of its NICs is cabled to ``tor_of_port[p]``."""
        self.add_host_by_nic(shape, index, [tor_of_port] * shape.nics)

    def add_host_by_nic(self, shape: HostShape, index: int, tors_of_nic: Sequence[Sequence[str]]) -> None:
        """Add host ``index``; port ``p`` of its NIC ``k`` is cabled to ``tors_of_nic[k][p]``."""
        self.add_wired_host(shape, index, [[(tor, shape.port_rate) for tor in tors] for tors in tors_of_nic])

    def add_wired_host(
        self, shape: HostShape, index: int, cables_of_nic: Sequence[Sequence[tuple[str, float]]]
    ) -> None:
        """Add host ``index``; ``cables_of_nic[k]`` are ToR and rate in bit/s of each port of NIC ``k``."""
        host = f"h{index}"
        gpus = tuple(f"{host}g{gpu}" for gpu in range(shape.gpus))
        nics = tuple(f"{host}n{nic}" for nic in range(shape.nics))
        self._hosts[host] = Host(host, index, gpus, nics)
        for gpu in gpus:
            self.connect(gpu, f"{host}nv", "nvlink", shape.nvlink_rate)
        for number in range(shape.nics):
            near = gpus[number * shape.gpus_per_nic : (number + 1) * shape.gpus_per_nic]
            self._add_nic(shape, host, number, near, cables_of_nic[number])

    def _add_nic(
        self, shape: HostShape, host: str, number: int, gpus: tuple[str, ...], cables: Sequence[tuple[str, float]]
    ) -> None:
        nic, pcie_switch = f"{host}n{number}", f"{host}s{number}"
        ports = tuple(f"{nic}p{port}" for port in range(len(cables)))
        self._nics[nic] = Nic(nic, host, number, pcie_switch, ports, gpus)
        for gpu in gpus:
            self.connect(gpu, pcie_switch, "pcie", shape.pcie_rate)
        self.connect(pcie_switch, nic, "pcie", shape.pcie_rate)
        if shape.intra_host == "pcie":
            self.connect(pcie_switch, f"{host}rc", "pcie", shape.pcie_rate)
        for port, (tor, rate) in zip(ports, cables, strict=True):
            self._ports[port] = Port(port, host, nic, tor)
            self.connect(port, tor, "host-tor", rate)

    def connect(self, one: str, other: str, kind: LinkKind, capacity: float, parallel: int = 1) -> None:
        """Lay ``parallel`` cables, each two links of ``capacity`` bit/s; a single cable has no number."""
        for cable in range(parallel):
            self.connect_one(one, other, kind, capacity, cable if parallel > 1 else None)

    def connect_one(self, one: str, other: str, kind: LinkKind, capacity: float, number: int | None = None) -> None:
        """Lay one cable, of ``number`` among the parallel ones, or None for the only one between the two."""
        suffix = "" if number is None else f".{number}"
        there, back = f"{one}->{other}{suffix}", f"{other}->{one}{suffix}"
        self._links[there] = Link(there, one, other, kind, capacity, back)
        self._links[back] = Link(back, other, one, kind, capacity, there)

    def mesh(
        self, lower: Sequence[str], upper: Sequence[str], kind: LinkKind, capacity: float, parallel: int = 1
    ) -> None:
        """Connect every node of ``lower`` with every node of ``upper``; ``ValueError`` if that makes too many links."""
        links = len(self._links) + 2 * len(lower) * len(upper) * parallel
        if links > LINKS:
            raise ValueError(f"links of the fabric must be at most {LINKS}, not {links} or more")
        for one in lower:
            for other in upper:
                self.connect(one, other, kind, capacity, parallel)

    def build(self, name: str, description: str, shape: HostShape) -> Fabric:
        """Return the immutable fabric; ``shape`` is that of its hosts."""
        parts = (self._hosts, self._nics, self._ports, self._switches, self._links)
        return Fabric(name, *parts, description, shape.intra_host, shape.pcie_queues)
