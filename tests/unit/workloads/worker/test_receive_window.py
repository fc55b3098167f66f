"""What a sender may have in flight stays what the plan says, also once the kernel knows the size of packets."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from workloads.iteration.byte_windows import ByteWindows
from workloads.iteration.job_plan import JobPlan, PlannedConnection
from workloads.worker.connections import Connections
from workloads.worker.tcp_endpoints import TcpReceiver, prepare

TCP_WINDOW_CLAMP = 10
TCP_INFO, TCP_INFO_SEND_WINDOW = 11, 228
WINDOW = 20_000
PIECE = 9_000


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection whose window is clamped as a job's are.

    A size of its buffer keeps the kernel from adapting buffer and window, as ``tcp_moderate_rcvbuf`` does for hosts.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 10 * WINDOW)
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
        select.select([ends[1]], (), (), 1.0)
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


def test_a_window_that_depends_on_the_bytes_is_looked_at_with_every_slice(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    growing = ByteWindows(40 * PIECE, (8 * PIECE, 16 * PIECE))
    plain, counted = (
        TcpReceiver("f", ends[1], [40 * PIECE], [0], window=8 * PIECE, windows=windows) for windows in (None, growing)
    )
    for into in (plain, counted):
        into.begin(40 * PIECE, 2 * PIECE)  # nothing of it is forwarded
    assert plain.lowat == 8 * PIECE and counted.lowat == 2 * PIECE


def plan(**changes: Any) -> JobPlan:
    """A job into which two flows come at one place, one of them with windows that grow."""
    incoming = tuple(PlannedConnection(flow, "127.0.0.1", 1, "127.0.0.1", 0, "h0") for flow in "ab")
    windows = {"b": ByteWindows(160 * PIECE, (WINDOW, 30 * WINDOW))}
    empty: dict[str, Any] = dict.fromkeys(("stragglers", "gpus", "phases", "outgoing"), ())
    numbers = {"seed": 1, "iterations": 1, "time_scale": 1.0, "jitter": 0.0, "slice_size": PIECE, "departure": 0.0}
    return JobPlan(
        name="job", incoming=incoming, window=WINDOW, link_rate=1.0, byte_windows=windows, **empty, **numbers, **changes
    )


def test_a_listener_has_room_for_the_largest_window_that_comes_in() -> None:
    job = SimpleNamespace(plan=plan(), outgoing={}, listeners=[])
    namespace = SimpleNamespace(prepare=lambda count: None, socket=socket.socket)
    loop = SimpleNamespace(watch=lambda *arguments: None)
    made: Any = Connections(loop, namespace, lambda event: None, {}, lambda *arguments: None)  # type: ignore[arg-type]
    made.listen(job)
    (listener,) = job.listeners
    with listener:
        assert clamp(listener) == 30 * WINDOW
        with socket.create_connection(listener.getsockname()) as one:
            listener.setblocking(True)
            other, _ = listener.accept()
            with other:
                other.setblocking(False)
                prepare(other, WINDOW)
                into = TcpReceiver("b", other, [160 * PIECE], window=WINDOW, windows=job.plan.byte_windows["b"])
                into.begin(160 * PIECE, PIECE)
                pass_on((one, other), into, 120)
                info = one.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256)
                # With a window scale for the first window alone it would stay at 65,535 bytes or twice that.
                assert struct.unpack_from("I", info, TCP_INFO_SEND_WINDOW)[0] > 10 * WINDOW
