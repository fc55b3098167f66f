"""Congestion control against its authors' analysis: queues, marks and shares where flows meet at one link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from rdma_traffic import Traffic, experiment_of, jain, network_model

from testbed.experiment.network_model import Buffers, Ecn, NetworkModel


@dataclass
class Incast:
    """What many senders to one host do once they are steady: mean queue in bytes, shares in bit/s, marks per packet."""

    queue: float
    shares: list[float]
    marked: float
    notices_per_s: float


def marks(counted: Mapping[str, float]) -> float:
    return counted["marked_share"] * counted["packets"]


def incast(folder: Path, model: NetworkModel, senders: int, rate: int, steady_s: float, seconds: float) -> Incast:
    traffic = Traffic(experiment_of(folder, model, hosts=senders + 1, rate=rate))
    places = [traffic.send(traffic.way(f"h{number + 1}", "h0"), 1e12) for number in range(senders)]
    traffic.run(steady_s)
    network, begun = traffic.network, traffic.now
    link = network.number[traffic.way("h1", "h0")[-1]]
    before, counted = [network.total(place) for place in places], network.counted()
    queues = []
    while traffic.now < begun + seconds:
        traffic.run(traffic.now + 20e-6)
        queues.append(float(network._state.queues[link, 0].queued))
    after = network.counted()
    passed = traffic.now - begun
    return Incast(
        float(np.mean(queues)),
        [8 * (network.total(place) - was) / passed for place, was in zip(places, before, strict=True)],
        (after["marked_share"] * after["packets"] - counted["marked_share"] * counted["packets"])
        / (after["packets"] - counted["packets"]),
        (after["notices"] - counted["notices"]) / passed,
    )


def dcqcn_marks(senders: int, rate: float, packet: int) -> float:
    """The share of marked packets at the fixed point (Zhu et al., CoNEXT 2016, section 3.1), paper's parameters."""
    per_s = rate / 8 / packet
    increase, timer, byte_counter, notice = 40e6 / 8 / packet, 55e-6, 10e6 / packet, 50e-6
    both = 1 / byte_counter + senders / (timer * per_s)
    return float((increase * senders**2 / (notice * per_s**2) * both**2) ** (1 / 3))


@pytest.mark.parametrize("senders", [2, 4, 8])
def test_dcqcn_has_the_marks_and_the_queue_of_its_fixed_point(tmp_path: Path, senders: int) -> None:
    ecn = Ecn(5e3, 200e3, 0.01, 40e9)
    model = network_model("dcqcn", ecn=ecn, mtu=1024, buffers=Buffers(1e9, 1.0))
    found = incast(tmp_path, model, senders, 40, steady_s=0.05, seconds=0.04)
    marked = dcqcn_marks(senders, 40e9, 1024)
    assert found.marked == pytest.approx(marked, rel=0.3)
    assert found.queue == pytest.approx(ecn.minimum + marked / ecn.probability * (ecn.maximum - ecn.minimum), rel=0.25)
    assert sum(found.shares) > 0.99 * 40e9 and jain(found.shares) > 0.98


def test_dcqcn_of_many_flows_stands_where_every_packet_is_marked(tmp_path: Path) -> None:
    """The fixed point would ask for more marks than there are below the maximum."""
    assert dcqcn_marks(32, 40e9, 1024) > 0.01
    model = network_model("dcqcn", ecn=Ecn(5e3, 200e3, 0.01, 40e9), mtu=1024, buffers=Buffers(1e9, 1.0))
    found = incast(tmp_path, model, 32, 40, steady_s=0.05, seconds=0.02)
    assert 0.8 * 200e3 < found.queue < 1.1 * 200e3
    assert jain(found.shares) > 0.98


def test_a_sender_hears_of_marks_at_most_every_fifty_microseconds(tmp_path: Path) -> None:
    model = network_model("dcqcn", ecn=Ecn(1.0, 2.0, 1.0), buffers=Buffers(1e9, 1.0))
    found = incast(tmp_path, model, 4, 100, steady_s=0.001, seconds=0.005)
    assert found.notices_per_s <= 4 / 50e-6 * 1.05


def test_hpcc_fills_its_share_of_the_link_with_hardly_a_queue(tmp_path: Path) -> None:
    found = incast(tmp_path, network_model("hpcc", mtu=1024), 4, 100, steady_s=0.01, seconds=0.01)
    assert sum(found.shares) == pytest.approx(0.95 * 100e9, rel=0.02)
    assert found.queue < 5 * 1024
    assert jain(found.shares) > 0.9


def test_dctcp_keeps_its_queue_about_where_marks_begin(tmp_path: Path) -> None:
    model = network_model("dctcp", ecn=Ecn(300e3, 300e3, 1.0))
    found = incast(tmp_path, model, 8, 100, steady_s=0.02, seconds=0.01)
    assert 0.8 * 300e3 < found.queue < 1.2 * 300e3
    assert sum(found.shares) > 0.99 * 100e9 and jain(found.shares) > 0.95


def test_without_congestion_control_only_pauses_hold_flows_back(tmp_path: Path) -> None:
    found = incast(tmp_path, network_model("unlimited"), 4, 100, steady_s=0.002, seconds=0.002)
    assert sum(found.shares) > 0.99 * 100e9 and jain(found.shares) > 0.99
    assert found.queue > 1e6
