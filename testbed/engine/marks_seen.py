"""Marks of packets taken from the wire against the marks that were in force. Pure but for reading packets with scapy.

A packet may wait in queues, and a mark decided now is on the wire a little later: a packet is right if
it carries a mark that was in force for its flow at some time from ``WAIT_S`` before it was seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat, takewhile
from math import inf
from typing import Final

from testbed.engine.packet_tap import TakenPacket
from topologies.addressing import address_of
from topologies.fabric import Fabric
from workloads.job import Flow

WAIT_S: Final = 3.0
"""Seconds, machine's clock, that a packet of a low level may wait for higher ones."""

MOST_READ: Final = 20_000
"""Packets that are read at a run's end, evenly chosen; each takes scapy a tenth of a millisecond."""

FiveTuple = tuple[str, int, str, int]


@dataclass(frozen=True, slots=True)
class SeenPacket:
    """A TCP packet of a flow (or its acknowledgement) and its ``IP_TOS``."""

    time_s: float
    flow: str
    outgoing: bool
    acknowledgement: bool
    tos: int


class MarkLog:
    """For each flow, the marks in force over time; what is set at the same time by several is a choice of marks."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}
        self._marks: dict[str, list[frozenset[int]]] = {}

    def set(self, flow: str, time_s: float, marks: Iterable[int]) -> None:
        """From ``time_s`` on ``flow`` carries one of ``marks``; times of a flow do not go back."""
        known, wanted = self._marks.setdefault(flow, []), frozenset(marks)
        if not known or known[-1] != wanted:
            self._times.setdefault(flow, []).append(time_s)
            known.append(wanted)

    def changes(self) -> Iterable[tuple[str, float, frozenset[int], float]]:
        """(flow, when, new marks, until) of every change of a flow's marks; not its first ones."""
        for flow, times in self._times.items():
            yield from zip(repeat(flow), times[1:], self._marks[flow][1:], [*times[2:], inf], strict=False)

    def allowed(self, flow: str, time_s: float) -> frozenset[int]:
        """Every mark in force for ``flow`` in the last :data:`WAIT_S` before ``time_s``."""
        times = self._times.get(flow, [])
        first = max(0, bisect_right(times, time_s - WAIT_S) - 1)
        last = bisect_right(times, time_s)
        return frozenset().union(*self._marks.get(flow, [])[first:last])


def read_packets(
    packets: Sequence[TakenPacket], fabric: Fabric, flows: Iterable[Flow], ports: Mapping[str, int]
) -> list[SeenPacket]:
    """Return those of ``packets`` that belong to ``flows``; ``ports`` are source ports in place of a flow's own.

    Packets that open a connection are left out: they carry nothing of the flow, and the answer leaves a socket that
    listens for several flows. Of more than :data:`MOST_READ` packets every second, third ... is read.
    """
    from scapy.layers.inet import IP, TCP  # half a second to import: only where packets are read

    names = dict(_five_tuples(fabric, flows, ports))
    seen: list[SeenPacket] = []
    for packet in packets[:: 1 + len(packets) // MOST_READ]:
        layer = IP(packet.head)
        if TCP not in layer or layer[TCP].flags.S:
            continue
        forward = (layer.src, layer[TCP].sport, layer.dst, layer[TCP].dport)
        backward = (layer.dst, layer[TCP].dport, layer.src, layer[TCP].sport)
        flow = names.get(forward, names.get(backward))
        if flow is not None:
            seen.append(SeenPacket(packet.time_s, flow, packet.outgoing, forward not in names, int(layer.tos) & 0xFC))
    return seen


def _five_tuples(fabric: Fabric, flows: Iterable[Flow], ports: Mapping[str, int]) -> Iterable[tuple[FiveTuple, str]]:
    for flow in flows:
        port = ports.get(flow.id, flow.source_port)
        yield (address_of(fabric, flow.source), port, address_of(fabric, flow.target), flow.target_port), flow.id


def wrong_marks(seen: Iterable[SeenPacket], log: MarkLog) -> list[str]:
    """Return one line per flow with packets that carried a mark nobody had decided, the most frequent flows first."""
    wrong: dict[str, list[SeenPacket]] = {}
    for packet in seen:
        allowed = log.allowed(packet.flow, packet.time_s)
        if allowed and packet.tos not in allowed:
            wrong.setdefault(packet.flow, []).append(packet)
    lines = []
    for flow, packets in sorted(wrong.items(), key=lambda item: (-len(item[1]), item[0])):
        marks = ", ".join(str(tos >> 2) for tos in sorted({packet.tos for packet in packets}))
        expected = ", ".join(str(tos >> 2) for tos in sorted(log.allowed(flow, packets[-1].time_s)))
        lines.append(f"{len(packets)} sampled packets of flow {flow} carried DSCP {marks}, decided was {expected}")
    return lines


def old_marks_s(seen: Iterable[SeenPacket], log: MarkLog) -> list[float]:
    """Return, for every change of marks after which a flow sent, for how many seconds its old mark still left.

    That is until the last packet with an old mark before the first with the new one, 0 if there was none:
    a flow that pauses in between has no packet to mark.
    """
    sent: dict[str, list[SeenPacket]] = {}
    for packet in sorted(seen, key=lambda packet: packet.time_s):
        if packet.outgoing and not packet.acknowledgement:
            sent.setdefault(packet.flow, []).append(packet)
    found = []
    for flow, when, marks, until in log.changes():
        after = [packet for packet in sent.get(flow, []) if when <= packet.time_s < until]
        old = list(takewhile(lambda packet, marks=marks: packet.tos not in marks, after))  # type: ignore[misc]
        if len(old) < len(after):
            found.append(old[-1].time_s - when if old else 0.0)
    return found
