"""Netlink messages, byte by byte; and those of the namespace that the tests run in."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.emulation.probes.netlink import CounterSocket, InterfaceCounters, QueueCounters

TCA_KIND, TCA_STATS2, STATS_BASIC, STATS_QUEUE = 1, 7, 1, 3
IFLA_IFNAME, IFLA_STATS64 = 3, 23
NEW_QDISC, NEW_LINK, DONE, ERROR = 36, 16, 3, 2


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(kind: int, body: bytes) -> bytes:
    whole = struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body
    return whole + bytes(-len(whole) % 4)


def qdisc(interface: int, handle: int, size: int, packets: int, backlog: int, drops: int) -> bytes:
    basic = attribute(STATS_BASIC, struct.pack("=QI4x", size, packets))
    queue = attribute(STATS_QUEUE, struct.pack("=5I", 1, backlog, drops, 0, 0))
    head = struct.pack("=BBHiIII", 0, 0, 0, interface, handle << 16, 0xFFFFFFFF, 1)
    return head + attribute(TCA_KIND, b"bfifo\0") + attribute(TCA_STATS2, basic + queue)


def link(index: int, name: str, counters: Sequence[int]) -> bytes:
    head = struct.pack("=BBHiII", 0, 0, 1, index, 0, 0)
    stats = struct.pack("=24Q", *counters, *[0] * (24 - len(counters)))
    return head + attribute(IFLA_IFNAME, name.encode() + b"\0") + attribute(IFLA_STATS64, stats)


class Kernel:
    """Answers every request with the next of its datagrams."""

    def __init__(self, *datagrams: bytes) -> None:
        self.datagrams = list(datagrams)
        self.asked: list[bytes] = []

    def send(self, request: bytes) -> None:
        self.asked.append(request)

    def recv(self, size: int) -> bytes:
        return self.datagrams.pop(0)[:size]


def counters_of(kernel: Kernel) -> CounterSocket:
    made = CounterSocket.__new__(CounterSocket)
    made._socket = kernel  # type: ignore[assignment]
    made._patterns = {}
    return made


u32 = st.integers(0, 2**32 - 1)
queues = st.tuples(st.integers(1, 500), st.integers(0, 0xFFFF), st.integers(0, 2**63), u32, u32, u32)


@given(st.lists(queues, max_size=8))
def test_every_queue_of_a_dump_is_read_wherever_its_datagrams_are_cut(
    rows: list[tuple[int, int, int, int, int, int]],
) -> None:
    messages = [message(NEW_QDISC, qdisc(*row)) for row in rows]
    half = len(messages) // 2
    datagrams = [part for part in (b"".join(messages[:half]), b"".join(messages[half:])) if part]
    kernel = Kernel(*datagrams, message(DONE, bytes(4)))
    assert counters_of(kernel).queues() == [QueueCounters(*row) for row in rows]


def test_the_root_queue_of_one_interface_is_asked_for_by_its_index() -> None:
    kernel = Kernel(message(NEW_QDISC, qdisc(7, 1, 123_456, 14, 9014, 2)))
    assert counters_of(kernel).root_queue(7) == QueueCounters(7, 1, 123_456, 14, 9014, 2)
    assert struct.unpack_from("=i", kernel.asked[0], 20) == (7,)


def test_the_queue_of_data_leaves_out_what_acknowledgements_took() -> None:
    replies = [qdisc(7, 1, 9_068, 2, 9014, 0), qdisc(7, 0x20, 54, 1, 0, 0)]
    kernel = Kernel(*(message(NEW_QDISC, reply) for reply in replies))
    assert counters_of(kernel).data_queue(7) == QueueCounters(7, 1, 9_014, 1, 9014, 0)
    assert [struct.unpack_from("=I", asked, 28) for asked in kernel.asked] == [(0xFFFFFFFF,), (0x10002,)]


def test_the_same_interface_is_read_again_and_again_also_when_its_queue_is_another_one_by_now() -> None:
    replies = [qdisc(7, 1, 100, 1, 9, 0), qdisc(7, 1, 300, 3, 0, 1), qdisc(7, 2, 50, 1, 0, 0)]
    counters = counters_of(Kernel(*(message(NEW_QDISC, reply) for reply in replies)))
    seen = [counters.root_queue(7) for _ in replies]
    assert seen == [
        QueueCounters(7, 1, 100, 1, 9, 0),
        QueueCounters(7, 1, 300, 3, 0, 1),
        QueueCounters(7, 2, 50, 1, 0, 0),
    ]


def test_classes_are_read_with_their_whole_handles_until_they_are_gone() -> None:
    full = message(NEW_QDISC, qdisc(7, 1, 100, 1, 9, 0)) + message(NEW_QDISC, qdisc(7, 2, 30, 2, 0, 1))
    end = message(DONE, bytes(4))
    counters = counters_of(Kernel(full + end, full, end, end))
    expected = [QueueCounters(7, 0x10000, 100, 1, 9, 0), QueueCounters(7, 0x20000, 30, 2, 0, 1)]
    assert [counters.classes(7) for _ in range(3)] == [expected, expected, []]


def test_an_interface_without_a_root_queue_is_an_error() -> None:
    with pytest.raises(OSError, match="interface 7 has no root queue"):
        counters_of(Kernel(message(ERROR, struct.pack("=i", -2)))).root_queue(7)


def test_a_refused_dump_is_an_error() -> None:
    with pytest.raises(OSError, match="refused"):
        counters_of(Kernel(message(ERROR, struct.pack("=i", -1)))).queues()


def test_packets_and_drops_of_an_interface_are_summed_over_both_directions() -> None:
    # rx and tx packets, bytes, errors, drops, in the order of struct rtnl_link_stats64
    kernel = Kernel(message(NEW_LINK, link(3, "tor0-eth1", (10, 20, 900, 1800, 1, 2, 3, 4))), message(DONE, bytes(4)))
    assert counters_of(kernel).interfaces() == [InterfaceCounters(3, "tor0-eth1", 30, 10)]


def test_a_message_without_counters_counts_as_zero() -> None:
    body = struct.pack("=BBHiIII", 0, 0, 0, 4, 0x10000, 0, 1) + attribute(TCA_KIND, b"noqueue\0")
    kernel = Kernel(message(NEW_QDISC, body) + message(DONE, bytes(4)))
    assert counters_of(kernel).queues() == [QueueCounters(4, 1, 0, 0, 0, 0)]


def test_the_kernel_of_this_machine_is_understood() -> None:
    counters = CounterSocket()
    try:
        assert "lo" in {entry.name for entry in counters.interfaces()}
        assert all(entry.interface > 0 for entry in counters.queues())
    finally:
        counters.close()
