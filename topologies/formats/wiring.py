"""From hosts, switches and the cables between them to a :class:`topologies.fabric.Fabric`, whatever file says them.

Nodes have the numbers or names of their file; the fabric names them as all fabrics do: ``h0`` .. and, by their
distance from the hosts, ``tor0`` .., ``agg0`` .., ``core0`` .., each in the order of the file. A line is where the
file says a thing, for messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from topologies.fabric import Fabric, IntraHost, LinkKind, PcieQueues, Tier
from topologies.hosts import PCIE_RATE, FabricBuilder, HostShape
from topologies.reachability import EVERY_HOST, ports_apart

TIERS: Final[tuple[Tier, ...]] = ("tor", "agg", "core")
KINDS: Final[Mapping[Tier, LinkKind]] = {"agg": "tor-agg", "core": "agg-core"}
"""Upper tier -> the kind of its links downwards."""


@dataclass(frozen=True, slots=True)
class Inside:
    """What files do not say of the inside of hosts."""

    pcie_rate: float = PCIE_RATE
    """bit/s of PCIe between GPU, PCIe switch and NIC, each direction."""
    intra_host: IntraHost = "instant"
    """What carries traffic between GPUs of a host."""
    pcie_queues: PcieQueues = "ideal"
    """Whether PCIe between GPUs and NICs delays network traffic."""


AS_USUAL: Final = Inside()


class WiringError(ValueError):
    """Cables that make no fabric; ``line`` as given with the cable."""

    def __init__(self, line: int | None, what: str, expected: str) -> None:
        super().__init__(line, what, expected)
        self.line = line
        self.what = what
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable between two switches, or from a NIC of a host (``one``) to a switch (``other``)."""

    one: str
    other: str
    rate: float
    """bit/s of payload, each direction."""
    line: int | None = None
    """Where its file says it."""


@dataclass(frozen=True, slots=True)
class WiredHost:
    """A host: its shape, and for each NIC its cables to switches, one per port."""

    shape: HostShape
    cables: tuple[tuple[Cable, ...], ...]


def tiers_of(hosts: Iterable[WiredHost], switches: Sequence[str], cables: Sequence[Cable]) -> dict[str, Tier]:
    """Return switch -> tier: those with hosts are ToRs, their neighbours aggregation, and what is beyond them core.

    Raises :class:`WiringError` for a switch that no host reaches, or that is more than two switches above them.
    """
    reached: dict[str, Tier] = {cable.other: "tor" for host in hosts for of_nic in host.cables for cable in of_nic}
    neighbours: dict[str, list[str]] = {}
    for cable in cables:
        neighbours.setdefault(cable.one, []).append(cable.other)
        neighbours.setdefault(cable.other, []).append(cable.one)
    frontier = list(reached)
    for tier in TIERS[1:]:
        frontier = [far for near in frontier for far in neighbours.get(near, ()) if far not in reached]
        reached.update(dict.fromkeys(frontier, tier))
    lost = next((switch for switch in switches if switch not in reached), None)
    if lost is not None:
        raise WiringError(
            None, f"switch {lost} is on no way of at most two tiers above a ToR", "ToRs, aggregation, core"
        )
    return {switch: reached[switch] for switch in switches}


def build(
    name: str, description: str, hosts: Sequence[WiredHost], tiers: Mapping[str, Tier], cables: Sequence[Cable]
) -> Fabric:
    """Return the fabric; parallel cables between two switches are numbered.

    Raises :class:`WiringError` for a cable that joins no neighbouring tiers and for hosts that cannot reach each other,
    ``ValueError`` for what is too large.
    """
    builder = FabricBuilder()
    names: dict[str, str] = {}
    for tier in TIERS:
        members = [switch for switch, its in tiers.items() if its == tier]
        names |= zip(members, builder.add_switches(tier, len(members)), strict=True)
    for index, host in enumerate(hosts):
        of_nic = [[(names[cable.other], cable.rate) for cable in cables] for cables in host.cables]
        builder.add_wired_host(host.shape, index, of_nic)
    _lay(builder, names, tiers, cables)
    fabric = builder.build(name, description, hosts[0].shape)
    if (apart := ports_apart(fabric)) is not None:
        in_file = {own: switch for switch, own in names.items()}
        one, other = (in_file[fabric.ports[port].switch] for port in apart)
        raise WiringError(None, f"hosts under switch {one} cannot reach those under switch {other}", EVERY_HOST)
    return fabric


def _lay(builder: FabricBuilder, names: Mapping[str, str], tiers: Mapping[str, Tier], cables: Sequence[Cable]) -> None:
    """Lay the cables between switches, from the lower tier to the upper one."""
    upward = [_upward(cable, tiers) for cable in cables]
    parallel = Counter((low, high) for low, high, _ in upward)
    laid = Counter[tuple[str, str]]()
    for low, high, cable in upward:
        number = laid[low, high] if parallel[low, high] > 1 else None
        laid[low, high] += 1
        builder.connect_one(names[low], names[high], KINDS[tiers[high]], cable.rate, number)


def _upward(cable: Cable, tiers: Mapping[str, Tier]) -> tuple[str, str, Cable]:
    low, high = sorted((cable.one, cable.other), key=lambda switch: TIERS.index(tiers[switch]))
    if TIERS.index(tiers[high]) - TIERS.index(tiers[low]) != 1:
        joined = f"{tiers[low]} {low} and {tiers[high]} {high}"
        raise WiringError(
            cable.line, f"a cable joins {joined}", "cables from ToRs to aggregation and from there to core"
        )
    return low, high, cable
