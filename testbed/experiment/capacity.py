"""How many packets a machine forwards beside the rest of a run: an estimate, until a rehearsal has measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from testbed.experiment.demand import SENDING_COST
from topologies.datapath import Datapath

MTUS: Final[Mapping[int, float]] = {9000: 1.0, 6000: 1.1, 4500: 1.2, 3000: 1.3, 2250: 1.35, 1500: 1.4}
"""Packet sizes, largest first, and how many times as many of them as of the largest cost about the same."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Packet hops per second that a machine carries, by packet size.

    A hop is a full packet at a switch. What its hosts do for a packet counts as ``SENDING_COST`` hops.
    """

    datapath: Datapath
    packet_hops_per_s: Mapping[int, float]

    def of(self, mtu: int) -> float:
        """Packet hops per second with packets of ``mtu`` bytes."""
        return self.packet_hops_per_s[mtu]

    def part(self, share: float) -> Capacity:
        """``share`` of it."""
        return replace(self, packet_hops_per_s={mtu: share * rate for mtu, rate in self.packet_hops_per_s.items()})


def alike(datapath: Datapath, packet_hops_per_s: float) -> Capacity:
    """The capacity of a machine that carries so many of the largest packets, and of others as ``MTUS`` says."""
    return Capacity(datapath, {other: packet_hops_per_s * more for other, more in MTUS.items()})


_CPU_S: Final[Mapping[Datapath, float]] = {"nftables": 4.5e-6, "userspace": 90e-6, "kernel": 90e-6}
_TWO_CORES_BUSY: Final = 1.3
ESTIMATES: Final[Mapping[Datapath, Capacity]] = {
    name: alike(name, _TWO_CORES_BUSY / cpu_s) for name, cpu_s in _CPU_S.items()
}
"""Before anything is measured: two cores of which 35 % stay idle, at so many CPU seconds for a packet hop."""


def weakest(datapaths: Sequence[Datapath]) -> Capacity:
    """The estimate of the datapath that carries least over three switches; ``ValueError`` without datapaths."""
    return ESTIMATES[min(datapaths, key=carries)]


def carries(datapath: Datapath) -> float:
    """Packets per second over three switches that ``datapath`` is estimated to carry."""
    return ESTIMATES[datapath].of(9000) / (SENDING_COST[datapath] + 3)
