"""What a machine forwards: full packets x switches per second with enough CPU left idle. Pure.

A budget is a few measured points, or the built-in one. Between points the cost of a packet-hop is
taken as linear, in packet size, in the number of ports that send and in channels (connections per pair
of ports); beyond them as at the nearest. The cost of a packet is linear in the switches that it passes:
some of it arises at its ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Final

from topologies.datapath import Datapath

PACKET_HOPS_PER_S: Final = 12_600.0
"""Full packets x switches per second that one userspace Open vSwitch thread forwards while 35 % of two cores
stay idle: 48 NICs at 6.25 Mbit/s over three switches, measured with ``benchmarks/forwarding_budget.py``."""

BUILT_IN_MTU: Final = 9000
BUILT_IN_PORTS: Final = 48
BUILT_IN_SWITCHES: Final = 3
"""Switches on a path of a Clos between two ToRs: where the built-in budgets were measured."""

SHARE_PLANNED: Final = 0.75
"""Share of a measured point that is planned with: a budget of a fast minute is too large later. Three measurements of
one point within three hours, on a machine that nobody else seemed to use, differed by up to a third."""

BUILT_IN: Final = "built in"


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """``packet_hops_per_s`` full packets of ``mtu`` bytes x switches, while ``ports`` host ports send.

    Each pair of ports has ``channels`` connections: those of several take several paths and queue behind one another at
    every switch, and a packet that queues costs a timer's interrupt. Each packet passes ``switches``. ``others`` is the
    share of the CPU that neighbours took meanwhile (theirs is not counted as the run's).
    """

    mtu: int
    ports: int
    packet_hops_per_s: float
    others: float = 0.0
    channels: int = 1
    switches: int = BUILT_IN_SWITCHES


@dataclass(frozen=True)
class Budget:
    """Measured points and where they come from; at least one point, all rates above 0, else ``ValueError``."""

    points: tuple[BudgetPoint, ...]
    source: str

    def __post_init__(self) -> None:
        if not self.points or any(point.packet_hops_per_s <= 0 for point in self.points):
            raise ValueError("a budget needs at least one point, and rates above 0")

    @property
    def mtus(self) -> tuple[int, ...]:
        """The packet sizes measured, largest first."""
        return tuple(sorted({point.mtu for point in self.points}, reverse=True))

    def at(self, mtu: int, ports: int, channels: float = 1.0, switches: float = BUILT_IN_SWITCHES) -> float:
        """Packet-hops per second to plan with for packets of ``mtu`` bytes.

        ``ports`` host ports send, with ``channels`` connections per pair of ports; a packet passes ``switches`` on
        average, at least one.
        """
        known = sorted({point.switches for point in self.points})
        passed = min(max(switches, known[0]), known[-1])
        of_packet = [(float(each), each * self._cost_by(each, mtu, ports, channels)) for each in known]
        share = 1.0 if self.source == BUILT_IN else SHARE_PLANNED
        return share * passed / _between(of_packet, passed)

    def _cost_by(self, switches: int, mtu: int, ports: int, channels: float) -> float:
        """Seconds per packet-hop, from the points of ``switches``, of which there is at least one."""
        counts = {point.channels for point in self.points if point.switches == switches}
        return _between([(float(count), self._cost(switches, mtu, ports, count)) for count in counts], channels)

    def _cost(self, switches: int, mtu: int, ports: int, channels: int) -> float:
        """Seconds per packet-hop, from the points of ``switches`` and ``channels``, of which there is at least one."""
        by_ports: dict[int, list[tuple[float, float]]] = {}
        for point in self.points:
            if (point.switches, point.channels) == (switches, channels):
                by_ports.setdefault(point.ports, []).append((point.mtu, 1.0 / point.packet_hops_per_s))
        return _between([(float(count), _between(costs, mtu)) for count, costs in by_ports.items()], ports)

    def part(self, share: float) -> Budget:
        """The budget of a run that is to leave more of the CPU idle: ``share`` of every rate, above 0."""
        points = (replace(point, packet_hops_per_s=share * point.packet_hops_per_s) for point in self.points)
        return replace(self, points=tuple(points))

    def with_more_ports(self, known: Budget) -> Budget:
        """This budget, and points for as many ports as ``known`` has beyond this one's.

        A packet costs more where more interfaces share caches; how many times more is taken from ``known``. Without
        these points a fabric ten times as large as the measured one would be planned as if it cost the same.
        """
        most = max(point.ports for point in self.points)
        more = tuple(
            replace(
                point,
                ports=ports,
                packet_hops_per_s=point.packet_hops_per_s
                * known.at(point.mtu, ports, point.channels)
                / known.at(point.mtu, most, point.channels),
            )
            for point in self.points
            for ports in sorted({other.ports for other in known.points})
            if point.ports == most < ports
        )
        return replace(self, points=self.points + more)

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
    return Budget((BudgetPoint(BUILT_IN_MTU, BUILT_IN_PORTS, packet_hops_per_s),), source)


def budget_of(document: Mapping[str, Any]) -> Budget:
    """What :meth:`Budget.document` wrote; ``ValueError``, ``KeyError`` or ``TypeError`` for anything else."""
    points = tuple(
        BudgetPoint(
            int(row["mtu"]),
            int(row["ports"]),
            float(row["packet_hops_per_s"]),
            float(row["others"]),
            int(row["channels"]),
            int(row["switches"]),
        )
        for row in document["points"]
    )
    return Budget(points, str(document["source"]))


_NFTABLES: Final = (
    BudgetPoint(BUILT_IN_MTU, BUILT_IN_PORTS, 70_000.0),
    BudgetPoint(BUILT_IN_MTU, 512, 35_000.0),
    BudgetPoint(BUILT_IN_MTU, BUILT_IN_PORTS, 32_000.0, channels=4),
    BudgetPoint(BUILT_IN_MTU, 512, 16_000.0, channels=4),
    BudgetPoint(BUILT_IN_MTU, BUILT_IN_PORTS, 24_000.0, switches=1),
    BudgetPoint(BUILT_IN_MTU, 512, 12_000.0, switches=1),
    BudgetPoint(BUILT_IN_MTU, BUILT_IN_PORTS, 18_000.0, channels=4, switches=1),
    BudgetPoint(BUILT_IN_MTU, 512, 9_000.0, channels=4, switches=1),
)
"""Less than was measured, since machines of one kind differ and every second of a run must leave 35 % idle, not half
of them: 48 NICs carried 84,000 to 106,000 (``benchmarks/forwarding_budget.py``), with four channels 41,000 to 55,000
(``doctor --measure``). A packet costs more where more interfaces share caches: 512 NICs are given half, and at 32,000
the jobs of ``clos1024`` left at least 67 % idle. With four channels flows contend at every switch, and each packet that
waits there needs a timer interrupt of its own."""

_USERSPACE: Final = (
    BudgetPoint(BUILT_IN_MTU, BUILT_IN_PORTS, PACKET_HOPS_PER_S),
    BudgetPoint(BUILT_IN_MTU, BUILT_IN_PORTS, 10_000.0, switches=1),
)
"""A fifth less than was measured last: 15,300 over three switches and 12,600 over one."""

BUILT_IN_BUDGETS: Final[Mapping[Datapath, Budget]] = {
    # Never measured: no machine with the module was at hand. It forwards more than the daemon does.
    "kernel": constant(PACKET_HOPS_PER_S),
    "nftables": Budget(_NFTABLES, BUILT_IN),
    "userspace": Budget(_USERSPACE, BUILT_IN),
}
"""Conservative, for a machine that has not been measured."""

DEFAULT: Final = BUILT_IN_BUDGETS["userspace"]


def weakest(budgets: Iterable[Budget]) -> Budget:
    """The budget that allows least, for the largest packets and many ports; ``ValueError`` without budgets."""
    return min(budgets, key=lambda budget: budget.at(BUILT_IN_MTU, BUILT_IN_PORTS))


@dataclass(frozen=True, slots=True)
class Sample:
    """A second of a measurement: what was forwarded, and shares of the CPU: the run's own, and what others took."""

    packet_hops_per_s: float
    busy: float
    others: float


MOST_BEYOND: Final = 1.1
"""Nothing is said about loads further beyond the largest that was tried."""


def affordable(runs: Sequence[Sequence[Sample]], allowed_busy: float) -> float:
    """Packet-hops per second that leave all seconds, or nine in ten, ``allowed_busy`` of the CPU or less to the run.

    Between a load that did and a larger one that did not, as on a straight line. From the largest tried on in
    proportion, which is too low if anything: some CPU time does not depend on load. From the smallest tried
    down by the square of that, for the same reason. ``ValueError`` without samples.
    """
    some = [run for run in runs if run]
    seen = sorted((_median([s.packet_hops_per_s for s in run]), _ninth_tenth([s.busy for s in run])) for run in some)
    if not seen:
        raise ValueError("no samples")
    within = [(load, busy) for load, busy in seen if busy <= allowed_busy]
    if not within:
        load, busy = seen[0]
        return load * (allowed_busy / busy) ** 2
    load, busy = within[-1]
    beyond = next(((more, its) for more, its in seen if more > load), None)
    if beyond is not None:
        more, its = beyond
        return load + (more - load) * (allowed_busy - busy) / (its - busy)
    return load * min(MOST_BEYOND, allowed_busy / max(busy, 1e-9))


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _ninth_tenth(values: Sequence[float]) -> float:
    return sorted(values)[int(0.9 * (len(values) - 1) + 0.5)]
