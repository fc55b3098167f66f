"""Congestion control against its authors' analysis: queues, marks and shares where flows meet at one link."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest

from benchmarks.rdma.dcqcn_theory import Setting, algorithm_marks, approximate_marks, fluid_marks
from benchmarks.rdma.fixed_points import DCQCN_ECN
from benchmarks.rdma.incast import incast
from benchmarks.rdma.traffic import jain, network_model
from testbed.engines.flow.networks.rdma_state import HEADERS
from testbed.experiment.network_model import Buffers, Delays, Ecn


@pytest.mark.parametrize("senders", [2, 4, 8])
def test_dcqcn_has_the_marks_and_the_queue_of_its_fixed_point(tmp_path: Path, senders: int) -> None:
    """By equation 14 of Zhu et al., CoNEXT 2016, and, closer, by the algorithm alone at equal chances.

    With 8 flows the queue at times is above the ramp, where all packets are marked: then marks say nothing about it.
    """
    model = network_model("dcqcn", ecn=DCQCN_ECN, mtu=1024, buffers=Buffers(1e9, 1.0))
    found = incast(tmp_path, model, senders, 40, steady_s=0.05, seconds=0.04)
    setting = Setting(senders)
    approximate, exact = approximate_marks(setting), algorithm_marks(setting, cycles=5_000)
    assert found.marked == pytest.approx(approximate, rel=0.3)
    assert found.queue == pytest.approx(setting.queue(approximate), rel=0.25)
    assert found.queue == pytest.approx(setting.queue(exact), rel=0.1)
    assert senders == 8 or found.marked == pytest.approx(exact, rel=0.1)
    assert sum(found.shares) > 0.99 * 40e9 and jain(found.shares) > 0.98


def test_equation_14_is_the_limit_of_equation_11_where_hardly_any_packet_is_marked() -> None:
    few, many = (replace(Setting(4), additive=additive) for additive in (1e-9, 40e6))
    assert approximate_marks(few) == pytest.approx(fluid_marks(few), rel=1e-4)
    assert fluid_marks(many) < 0.9 * approximate_marks(many)


def test_dcqcn_of_many_flows_stands_where_every_packet_is_marked(tmp_path: Path) -> None:
    """The fixed point would ask for more marks than there are below the maximum."""
    assert fluid_marks(Setting(32)) > 0.01 and algorithm_marks(Setting(32), cycles=2_000) > 0.01
    model = network_model("dcqcn", ecn=DCQCN_ECN, mtu=1024, buffers=Buffers(1e9, 1.0))
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


@pytest.mark.parametrize("senders", [2, 10])
def test_dctcp_swings_about_where_marks_begin_as_its_authors_say(tmp_path: Path, senders: int) -> None:
    """Figure 12 of SIGCOMM 2010 with packets of 1,500 bytes: at most K + N, and by equation 8 down from there.

    A window that shrank twice for the marks of one round trip would swing further.
    """
    threshold, packet = 40, 1500
    ecn = Ecn(threshold * packet, threshold * packet, 1.0, 10e9)
    model = network_model("dctcp", ecn=ecn, mtu=packet - HEADERS, delays=Delays(25e-6))
    found = incast(tmp_path, model, senders, 10, steady_s=0.05, seconds=0.05)
    low, high = (found.quantile(share) / packet for share in (0.01, 0.99))
    swing = sqrt(2 * senders * (10e9 / 8 / model.mtu * 100e-6 + threshold)) / 2
    assert high == pytest.approx(threshold + senders, rel=0.1)
    assert 0.7 * swing < high - low < 1.1 * swing


def test_without_congestion_control_only_pauses_hold_flows_back(tmp_path: Path) -> None:
    found = incast(tmp_path, network_model("unlimited"), 4, 100, steady_s=0.002, seconds=0.002)
    assert sum(found.shares) > 0.99 * 100e9 and jain(found.shares) > 0.99
    assert found.queue > 1e6
