"""Many senders to one host until they are steady: the queue, the shares and the marks at the link that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.rdma.traffic import Traffic, experiment_of
from testbed.experiment.network_model import NetworkModel

_SAMPLE_S = 20e-6
_ENDLESS = 1e12
"""Bytes of a message that does not end."""


@dataclass(frozen=True)
class Incast:
    """Bytes of the ``queue`` at every sample, ``shares`` in bit/s, marks per packet and notices per second."""

    queues: tuple[float, ...]
    shares: tuple[float, ...]
    marked: float
    notices_per_s: float

    @property
    def queue(self) -> float:
        """The mean queue in bytes."""
        return float(np.mean(self.queues))

    def quantile(self, share: float) -> float:
        """Bytes that the queue does not exceed for ``share`` of the time."""
        return float(np.quantile(self.queues, share))

    def above(self, size: float) -> float:
        """The share of the time that the queue is longer than ``size`` bytes."""
        return float(np.mean(np.array(self.queues) > size))


def marks(counted: Mapping[str, float]) -> float:
    """Packets marked so far."""
    return counted["marked_share"] * counted["packets"]


def incast(folder: Path, model: NetworkModel, senders: int, rate: int, steady_s: float, seconds: float) -> Incast:
    """``senders`` on one switch, links of ``rate`` Gbit/s; what is measured for ``seconds`` from ``steady_s`` on."""
    traffic = Traffic(experiment_of(folder, model, hosts=senders + 1, rate=rate))
    places = [traffic.send(traffic.way(f"h{number + 1}", "h0"), _ENDLESS) for number in range(senders)]
    traffic.run(steady_s)
    network, begun = traffic.network, traffic.now
    link = traffic.way("h1", "h0")[-1]
    before, counted = [network.total(place) for place in places], network.counted()
    queues = []
    while traffic.now < begun + seconds:
        traffic.run(traffic.now + _SAMPLE_S)
        queues.append(traffic.queued(link))
    after, passed = network.counted(), traffic.now - begun
    return Incast(
        tuple(queues),
        tuple(8 * (network.total(place) - was) / passed for place, was in zip(places, before, strict=True)),
        (marks(after) - marks(counted)) / (after["packets"] - counted["packets"]),
        (after["notices"] - counted["notices"]) / passed,
    )
