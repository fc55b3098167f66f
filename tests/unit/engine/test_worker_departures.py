"""Departures of messages on loopback connections: a real kernel, no root."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest

from workloads.worker.departures import Departures
from workloads.worker.streams import InStream, OutStream

SLICE = 1000
PATIENCE_S = 5.0


@pytest.fixture
def pair() -> Iterator[tuple[OutStream, InStream]]:
    with socket.socket() as listener, socket.socket() as one:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        one.connect(listener.getsockname())
        other, _ = listener.accept()
        with other:
            one.setblocking(False)
            other.setblocking(False)
            yield OutStream("f", one, departures=Departures(one)), InStream("f", other)


def wait_for_stamp(out: OutStream) -> bool:
    """Wait for the error queue alone, as the worker does; return whether something had come."""
    with select.epoll() as poll:
        poll.register(out.connection.fileno(), 0)
        return bool(poll.poll(PATIENCE_S)) and out.stamped()


def test_a_message_is_done_when_its_last_byte_has_left_not_when_the_kernel_took_it(
    pair: tuple[OutStream, InStream],
) -> None:
    out, _ = pair
    out.begin(10_000, 0, None)
    assert not out.send(SLICE)
    assert out.sent == 10_000 and out.leaving and not out.done
    assert wait_for_stamp(out)
    assert out.done and not out.leaving


def test_the_next_message_waits_for_its_own_last_byte(pair: tuple[OutStream, InStream]) -> None:
    out, _ = pair
    for size in (10_000, 1, 70_000):
        out.begin(size, 0, None)
        out.send(SLICE)
        assert out.leaving
        while out.leaving:
            assert wait_for_stamp(out)
        assert out.done


def test_a_message_that_the_kernel_takes_in_parts_is_done_when_all_of_it_has_left(
    pair: tuple[OutStream, InStream],
) -> None:
    out, into = pair
    size = 32 << 20
    into.begin(size, SLICE)
    out.begin(size, 0, None)
    assert out.send(SLICE) and not out.done
    with select.epoll() as poll:
        poll.register(into.connection.fileno(), select.EPOLLIN)
        poll.register(out.connection.fileno(), select.EPOLLOUT)
        while not out.done:
            ready = dict(poll.poll(PATIENCE_S))
            assert ready
            if out.connection.fileno() in ready:
                if ready[out.connection.fileno()] & select.EPOLLERR:
                    out.stamped()
                out.send(SLICE)
            if into.connection.fileno() in ready:
                into.receive(SLICE)
    assert out.sent == size


def test_an_empty_message_has_nothing_that_leaves(pair: tuple[OutStream, InStream]) -> None:
    out, _ = pair
    out.begin(0, 0, None)
    assert not out.send(SLICE) and out.done


def test_a_broken_connection_is_an_error_and_no_departure(pair: tuple[OutStream, InStream]) -> None:
    out, into = pair
    into.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    out.begin(10_000, 0, None)
    out.send(SLICE)
    while out.leaving:
        wait_for_stamp(out)
    into.connection.close()
    with pytest.raises(ConnectionResetError, match="flow f"):
        wait_for_stamp(out)
