"""Packets off the wire against the marks in force: what was decided a moment ago may still wait in a queue."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, TCP, UDP

from testbed.engines.common.mark_log import WAIT_S, MarkLog
from testbed.engines.emulation.probes.dscp_check import SeenPacket, old_marks_s, read_packets, wrong_marks
from testbed.engines.emulation.probes.packet_tap import TakenPacket
from topologies.addressing import address_of
from topologies.clos import clos
from workloads.job import Flow
from workloads.worker.socket_options import ACKNOWLEDGEMENT_TOS

FABRIC = clos(hosts=2, gpus_per_host=2, nics_per_host=1, tors=2, aggregations=1, port_rate=1e9, fabric_rate=1e9)
FLOW = Flow("a", "job", "h0n0p0", "h1n0p0", 1e6, 20000, 5000)
HIGH, LOW = 224, 32


def taken(
    source: str, target: str, source_port: int, target_port: int, tos: int = HIGH, flags: str = "A"
) -> TakenPacket:
    head = IP(src=address_of(FABRIC, source), dst=address_of(FABRIC, target), tos=tos)
    return TakenPacket(1.0, "h0", True, bytes(head / TCP(sport=source_port, dport=target_port, flags=flags)))


def seen(time_s: float, tos: int) -> SeenPacket:
    return SeenPacket(time_s, "a", True, False, tos)


def test_data_and_acknowledgements_are_told_apart_and_strangers_left_out() -> None:
    packets = [
        taken("h0n0p0", "h1n0p0", 20000, 5000),
        taken("h1n0p0", "h0n0p0", 5000, 20000, tos=LOW | 1),
        taken("h0n0p0", "h1n0p0", 20001, 5000),
        TakenPacket(1.0, "h0", True, bytes(IP(src="10.0.0.1", dst="10.0.0.2") / UDP())),
    ]
    found = read_packets(packets, FABRIC, [FLOW], {})
    assert [(packet.flow, packet.acknowledgement, packet.tos) for packet in found] == [
        ("a", False, HIGH),
        ("a", True, LOW),
    ]


def test_an_acknowledgement_below_the_highest_level_is_a_finding() -> None:
    log = MarkLog()
    log.set("a", 0.0, [LOW])
    found = [SeenPacket(1.0, "a", False, True, tos) for tos in (ACKNOWLEDGEMENT_TOS, LOW)]
    assert wrong_marks(found[:1], log) == []
    (line,) = wrong_marks(found, log)
    assert line == f"1 sampled packets of flow a carried DSCP {LOW >> 2}, decided was {ACKNOWLEDGEMENT_TOS >> 2}"


def test_packets_that_open_a_connection_are_left_out() -> None:
    opening = [
        taken("h0n0p0", "h1n0p0", 20000, 5000, flags="S"),
        taken("h1n0p0", "h0n0p0", 5000, 20000, tos=0, flags="SA"),
    ]
    assert read_packets(opening, FABRIC, [FLOW], {}) == []


def test_a_reset_of_the_kernel_after_a_job_has_closed_its_sockets_is_left_out() -> None:
    resets = [taken("h1n0p0", "h0n0p0", 5000, 20000, tos=0, flags=flags) for flags in ("R", "RA")]
    assert read_packets(resets, FABRIC, [FLOW], {}) == []


def test_a_source_port_of_the_decision_stands_for_the_flows_own() -> None:
    packets = [taken("h0n0p0", "h1n0p0", 20001, 5000)]
    assert len(read_packets(packets, FABRIC, [FLOW], {"a": 20001})) == 1


@pytest.mark.parametrize(
    ("time_s", "tos", "right"),
    [(0.5, HIGH, True), (0.5, LOW, False), (10.5, HIGH, True), (10.5, LOW, True), (10.5 + WAIT_S, HIGH, False)],
)
def test_a_mark_is_right_while_it_is_in_force_and_as_long_as_a_packet_may_wait(
    time_s: float, tos: int, right: bool
) -> None:
    log = MarkLog()
    log.set("a", 0.0, [HIGH])
    log.set("a", 10.0, [LOW])
    assert (wrong_marks([seen(time_s, tos)], log) == []) is right


def test_a_wrong_mark_is_named_with_its_flow_and_what_was_decided() -> None:
    log = MarkLog()
    log.set("a", 0.0, [HIGH])
    assert wrong_marks([seen(1.0, LOW), seen(2.0, 0)], log) == [
        "2 sampled packets of flow a carried DSCP 0, 8, decided was 56"
    ]


def test_a_flow_whose_level_counts_bytes_may_carry_any_of_its_marks() -> None:
    log = MarkLog()
    log.set("a", 0.0, [HIGH, LOW])
    assert wrong_marks([seen(1.0, HIGH), seen(1.0, LOW)], log) == []
    assert wrong_marks([seen(1.0, 64)], log) != []


def test_an_old_mark_counts_until_the_first_packet_with_the_new_one() -> None:
    log = MarkLog()
    log.set("a", 0.0, [LOW])
    log.set("a", 10.0, [HIGH])
    assert old_marks_s([seen(9.9, LOW), seen(10.02, LOW), seen(10.4, HIGH), seen(11.0, LOW)], log) == [
        pytest.approx(0.02)
    ]
    assert old_marks_s([seen(5.0, LOW), seen(12.0, HIGH)], log) == [0.0]
    assert old_marks_s([seen(5.0, LOW)], log) == []
