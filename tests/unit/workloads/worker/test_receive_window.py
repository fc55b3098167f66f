"""What a sender may have in flight stays what the plan says, also once the kernel knows the size of packets."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from workloads.iteration.byte_windows import ByteWindows
from workloads.worker.tcp_endpoints import TcpReceiver, prepare

TCP_WINDOW_CLAMP = 10
WINDOW = 20_000
PIECE = 9_000


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection whose window is clamped as a job's are."""
    listener = socket.socket()
    prepare(listener, WINDOW)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    with listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    other.setblocking(False)
    prepare(other, WINDOW)
    with one, other:
        yield one, other


def clamp(connection: socket.socket) -> int:
    return connection.getsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP)


def pass_on(ends: tuple[socket.socket, socket.socket], into: TcpReceiver, pieces: int) -> None:
    for _ in range(pieces):
        ends[0].send(bytes(PIECE))
        into.receive(PIECE)


def test_the_window_of_a_connection_outlasts_its_first_full_packet(ends: tuple[socket.socket, socket.socket]) -> None:
    into = TcpReceiver("f", ends[1], sizes=[100 * PIECE], window=WINDOW)
    into.begin(100 * PIECE, PIECE)
    pass_on(ends, into, 20)
    assert clamp(ends[1]) == WINDOW


def test_a_window_that_depends_on_the_bytes_is_the_one_that_is_kept(ends: tuple[socket.socket, socket.socket]) -> None:
    into = TcpReceiver("f", ends[1], [100 * PIECE], window=WINDOW, windows=ByteWindows(10 * PIECE, (15_000, 12_000)))
    into.begin(100 * PIECE, PIECE)
    pass_on(ends, into, 1)
    assert clamp(ends[1]) == 15_000
    pass_on(ends, into, 4)
    assert clamp(ends[1]) == 12_000
