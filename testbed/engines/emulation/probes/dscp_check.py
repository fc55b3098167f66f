"""Marks of packets taken from the wire against the marks that were in force."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from testbed.engines.common.mark_log import MarkLog
from testbed.engines.emulation.probes.packet_tap import TakenPacket
from topologies.addressing import address_of
from topologies.fabric import Fabric
from workloads.job import Flow
from workloads.worker.socket_options import ACKNOWLEDGEMENT_TOS

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


def read_packets(
    packets: Sequence[TakenPacket], fabric: Fabric, flows: Iterable[Flow], ports: Mapping[str, int]
) -> list[SeenPacket]:
    """Return those of ``packets`` that belong to ``flows``; ``ports`` are source ports in place of a flow's own.

    Packets that open a connection are left out: they carry nothing of the flow, and the answer leaves a socket that
    listens for several flows. So are resets: the kernel sends them, without a mark, where a job that was stopped has
    closed its sockets. Of more than :data:`MOST_READ` packets every second, third ... is read.
    """
    from scapy.layers.inet import IP, TCP  # half a second to import: only where packets are read

    names = dict(_five_tuples(fabric, flows, ports))
    seen: list[SeenPacket] = []
    for packet in packets[:: 1 + len(packets) // MOST_READ]:
        layer = IP(packet.head)
        if TCP not in layer or layer[TCP].flags.S or layer[TCP].flags.R:
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
        allowed = _allowed(packet, log)
        if allowed and packet.tos not in allowed:
            wrong.setdefault(packet.flow, []).append(packet)
    lines = []
    for flow, packets in sorted(wrong.items(), key=lambda item: (-len(item[1]), item[0])):
        marks = ", ".join(str(tos >> 2) for tos in sorted({packet.tos for packet in packets}))
        expected = ", ".join(str(tos >> 2) for tos in sorted(_allowed(packets[-1], log)))
        lines.append(f"{len(packets)} sampled packets of flow {flow} carried DSCP {marks}, decided was {expected}")
    return lines


def _allowed(packet: SeenPacket, log: MarkLog) -> Collection[int]:
    return (ACKNOWLEDGEMENT_TOS,) if packet.acknowledgement else log.allowed(packet.flow, packet.time_s)


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
