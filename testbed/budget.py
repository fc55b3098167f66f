"""What a machine forwards: full packets x switches per second with enough CPU left idle. Pure.

A budget is a few measured points, or the built-in one. Between points the cost of a packet-hop is
taken as linear, in packet size and in the number of ports that send; beyond them as at the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

PACKET_HOPS_PER_S: Final = 12_600.0
"""Full packets x switches per second that one userspace Open vSwitch thread forwards while 35 % of two cores
stay idle: 48 NICs at 6.25 Mbit/s over three switches, measured with ``benchmarks/forwarding_budget.py``."""

BUILT_IN_MTU: Final = 9000
BUILT_IN_PORTS: Final = 48

SHARE_PLANNED: Final = 0.95
"""Share of a measured point that is planned with: two measurements of one differ by up to this much."""

BUILT_IN: Final = "built in"


@dataclass(frozen=True, slots=True)
class Point:
    """``packet_hops_per_s`` full packets of ``mtu`` bytes x switches, while ``ports`` host ports send.

    ``others`` is the share of the CPU that neighbours took meanwhile (theirs is not counted as the run's).
    """

    mtu: int
    ports: int
    packet_hops_per_s: float
    others: float = 0.0


@dataclass(frozen=True)
class Budget:
    """Measured points and where they come from; at least one point, all rates above 0, else ``ValueError``."""

    points: tuple[Point, ...]
    source: str

    def __post_init__(self) -> None:
        if not self.points or any(point.packet_hops_per_s <= 0 for point in self.points):
            raise ValueError("a budget needs at least one point, and rates above 0")

    @property
    def mtus(self) -> tuple[int, ...]:
        """The packet sizes measured, largest first."""
        return tuple(sorted({point.mtu for point in self.points}, reverse=True))

    def at(self, mtu: int, ports: int) -> float:
        """Packet-hops per second to plan with for packets of ``mtu`` bytes and ``ports`` sending host ports."""
        by_ports: dict[int, list[tuple[float, float]]] = {}
        for point in self.points:
            by_ports.setdefault(point.ports, []).append((point.mtu, 1.0 / point.packet_hops_per_s))
        costs = [(float(count), _between(cost, mtu)) for count, cost in by_ports.items()]
        share = 1.0 if self.source == BUILT_IN else SHARE_PLANNED
        return share / _between(costs, ports)

    def document(self) -> dict[str, Any]:
        """The budget as JSON."""
        return {"source": self.source, "points": [asdict(point) for point in self.points]}


def _between(known: Sequence[tuple[float, float]], x: float) -> float:
    """Linear interpolation in (x, y) pairs, constant beyond their ends."""
    ordered = sorted(known)
    if x <= ordered[0][0]:
        return ordered[0][1]
    for (left, low), (right, high) in pairwise(ordered):
        if x <= right:
            return low + (high - low) * (x - left) / (right - left)
    return ordered[-1][1]


def constant(packet_hops_per_s: float, source: str = BUILT_IN) -> Budget:
    """A budget of one number for every packet size."""
    return Budget((Point(BUILT_IN_MTU, BUILT_IN_PORTS, packet_hops_per_s),), source)


def budget_of(document: Mapping[str, Any]) -> Budget:
    """What :meth:`Budget.document` wrote; ``ValueError``, ``KeyError`` or ``TypeError`` for anything else."""
    points = tuple(
        Point(int(row["mtu"]), int(row["ports"]), float(row["packet_hops_per_s"]), float(row["others"]))
        for row in document["points"]
    )
    return Budget(points, str(document["source"]))


DEFAULT: Final = constant(PACKET_HOPS_PER_S)
"""Conservative, for a machine that has not been measured."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A second of a measurement: what was forwarded, and shares of the CPU: the run's own, and what others took."""

    packet_hops_per_s: float
    busy: float
    others: float


def affordable(samples: Sequence[Sample], allowed_busy: float) -> float:
    """Packet-hops per second at which ``allowed_busy`` of the CPU is the run's own. Needs two samples or more.

    A straight line of CPU over load through all samples, raised until nine in ten lie under it. Never more
    than a tenth beyond the largest load that was tried. ``ValueError`` where CPU does not grow with load.
    """
    if len(samples) < 2:
        raise ValueError(f"{len(samples)} samples, expected two or more")
    loads = [sample.packet_hops_per_s for sample in samples]
    slope, offset = _fit(loads, [sample.busy for sample in samples])
    above = sorted(sample.busy - offset - slope * sample.packet_hops_per_s for sample in samples)
    offset += max(0.0, above[int(0.9 * (len(above) - 1) + 0.5)])
    found = (allowed_busy - offset) / slope
    if found <= 0:
        raise ValueError("the CPU is busy without any load")
    return min(found, 1.1 * max(loads))


def _fit(loads: Sequence[float], busy: Sequence[float]) -> tuple[float, float]:
    """Slope and offset of least squares; a line through the origin where all loads are about the same."""
    count, mean_load, mean_busy = len(loads), sum(loads) / len(loads), sum(busy) / len(busy)
    spread = sum((load - mean_load) ** 2 for load in loads)
    slope = sum((load - mean_load) * (share - mean_busy) for load, share in zip(loads, busy, strict=True))
    if spread < count * (0.05 * mean_load) ** 2:
        slope, spread = mean_busy, mean_load
    if spread <= 0 or slope <= 0:
        raise ValueError("CPU time does not grow with the load")
    return slope / spread, mean_busy - slope / spread * mean_load
