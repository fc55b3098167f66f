"""Small networks of packets: a byte per second and link is a byte of payload, a packet is 8960 bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from testbed.api import prepare
from testbed.engines.flow.networks.packet_network import PacketNetwork
from testbed.experiment.experiment import Experiment, Scale

PACKET = 8960.0
RATE = 100 * PACKET
"""Bytes per second of a link that sends a packet in 10 ms."""
SHRUNK = 100_000.0


@cache
def experiment(dilation: float) -> Experiment:
    """One whose packets are ``SHRUNK / dilation`` times 8960 bytes, in windows of eight."""
    (found,) = prepare("hello.yaml", engine="flow", schedulers=["ecmp"]).experiments
    return replace(found, scale=Scale(SHRUNK, dilation))


def network(rates: Mapping[str, float], dilation: float = SHRUNK) -> PacketNetwork:
    """Links at so many bytes of payload per second; the larger the dilation, the smaller their buckets."""
    return PacketNetwork({link: 8 * rate for link, rate in rates.items()}, experiment(dilation))


def send(made: PacketNetwork, way: Sequence[str], packets: float, level: int = 0) -> int:
    """A flow that begins a message of so many packets now."""
    place = made.add(way, level)
    made.begin(place, packets * PACKET, packets * PACKET, None, 0.0)
    made.send(place, True)
    return place


def ends(made: PacketNetwork, until: float = 1e6) -> dict[int, float]:
    """Place -> when its message was through."""
    found: dict[int, float] = {}
    now = 0.0
    while now < until:
        now, places = made.run(now, until)
        found |= {place: now for place in places if made.ended(place)}
    return found
