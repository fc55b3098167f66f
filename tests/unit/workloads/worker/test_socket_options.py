"""A sender's marks: by bytes of the message, at once where it is told so."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decision import ByteLevels
from workloads.iteration.byte_marks import ByteMarks
from workloads.worker.socket_options import head_start, pace, unacknowledged, waits_at_its_link
from workloads.worker.tcp_endpoints import TcpSender

SLICE = 100
HIGH, LOW = 224, 32


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    one.setblocking(False)
    other.setblocking(False)
    with one, other:
        yield one, other


def tos(connection: socket.socket) -> int:
    return connection.getsockopt(socket.IPPROTO_IP, socket.IP_TOS)


@given(
    by=st.sampled_from(["left", "sent"]),
    thresholds=st.lists(st.integers(1, 1000), unique=True, max_size=7).map(sorted),
    size=st.integers(1, 1200),
)
def test_a_sender_marks_bytes_as_the_decision_says_and_names_the_byte_where_that_changes(
    by: str, thresholds: list[int], size: int
) -> None:
    marks = ByteMarks(by == "left", tuple(thresholds), tuple(range(len(thresholds) + 1)))
    levels = ByteLevels(by, tuple(map(float, thresholds)))  # type: ignore[arg-type]
    sent = 0
    while sent < size:
        level, until = marks.at(sent, size)
        assert sent < until <= size
        for offset in (sent, until - 1):
            assert level == levels.level(size - offset if by == "left" else offset + 1)
        sent = until


def test_a_mark_changes_at_once(connection: tuple[socket.socket, socket.socket]) -> None:
    stream = TcpSender("f", connection[0], tos=HIGH)
    stream.begin(64 << 20, 0, None)
    assert stream.send(SLICE) and unacknowledged(connection[0]) > 0
    stream.mark(LOW)
    assert tos(connection[0]) == LOW


def test_a_message_falls_level_by_level_as_it_is_sent(connection: tuple[socket.socket, socket.socket]) -> None:
    one, _ = connection
    stream = TcpSender("f", one, tos=HIGH, marks=ByteMarks(False, (1000,), (HIGH, LOW)))
    stream.begin(3000, 0, None)
    stream.send(SLICE)
    assert stream.done
    assert tos(one) == LOW
    stream.begin(3000, 0, None)
    assert stream.marks is not None and stream.marks.at(0, 3000)[0] == HIGH


def test_a_rate_is_the_kernels_to_keep(connection: tuple[socket.socket, socket.socket]) -> None:
    pace(connection[0], 125_000.0)
    assert connection[0].getsockopt(socket.SOL_SOCKET, 47) == 125_000
    pace(connection[0], None)
    assert connection[0].getsockopt(socket.SOL_SOCKET, 47) in (-1, 0xFFFFFFFF)


@given(packets=st.integers(1, 60), rate=st.floats(1e4, 1e7))
def test_with_its_head_start_a_paced_message_takes_what_its_rate_says(packets: int, rate: float) -> None:
    """What the kernel does: pairs of packets, twice a packet's time apart, half of the first wait forgiven."""
    segment, leaves = 1000, 0.0
    for pair in range(1, (packets + 1) // 2):
        leaves += segment / rate if pair == 1 else 2 * segment / rate
    assert head_start(packets * segment, segment, rate) + leaves == pytest.approx(packets * segment / rate)


def test_only_a_paced_message_is_held_back_and_none_longer_than_pacing_makes_it(
    connection: tuple[socket.socket, socket.socket],
) -> None:
    stream = TcpSender("f", connection[0], link_rate=1e6)
    stream.begin(10_000_000, 0, None)
    assert stream.hold_back_s(0.01) == 0.0
    stream.rate = 0.5e6
    assert 0.0 < stream.hold_back_s(0.01) < 1.0
    stream.rate = 1e6
    assert stream.hold_back_s(0.01) == 0.0


def test_what_has_been_sent_waits_until_somebody_takes_it() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert not waits_at_its_link(one)
        one.send(bytes(100))
        assert waits_at_its_link(one)
        other.recv(100)
        assert not waits_at_its_link(one)
