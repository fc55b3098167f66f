"""Marks of packets taken from the wire against the marks that were in force. Pure but for reading packets with scapy.

A packet may wait in queues, and a mark decided now is on the wire a little later: a packet is right if
it carries a mark that was in force for its flow at some time from ``WAIT_S`` before it was seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from testbed.engine.packet_tap import TakenPacket
from topologies.addressing import address_of
from topologies.fabric import Fabric
from workloads.job import Flow

WAIT_S: Final = 3.0
"""Seconds, machine's clock, that a packet of a low level may wait for higher ones."""

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
        self._times.setdefault(flow, []).append(time_s)
        self._marks.setdefault(flow, []).append(frozenset(marks))

    def allowed(self, flow: str, time_s: float) -> frozenset[int]:
        """Every mark in force for ``flow`` in the last :data:`WAIT_S` before ``time_s``."""
        times = self._times.get(flow, [])
        first = max(0, bisect_right(times, time_s - WAIT_S) - 1)
        last = bisect_right(times, time_s)
        return frozenset().union(*self._marks.get(flow, [])[first:last])


def read_packets(
    packets: Sequence[TakenPacket], fabric: Fabric, flows: Iterable[Flow], ports: Mapping[str, int]
) -> list[SeenPacket]:
    """Return those of ``packets`` that belong to ``flows``; ``ports`` are source ports in place of a flow's own."""
    from scapy.layers.inet import IP, TCP  # half a second to import: only where packets are read

    names = dict(_five_tuples(fabric, flows, ports))
    seen: list[SeenPacket] = []
    for packet in packets:
        layer = IP(packet.head)
        if TCP not in layer:
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
