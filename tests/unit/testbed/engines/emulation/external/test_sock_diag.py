"""The lists of the kernel, of sockets that this process has made."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from testbed.engines.emulation.external.foreign_sockets import borrowed, set_mark
from testbed.engines.emulation.external.processes import Holder, descendants, parents, sockets_of
from testbed.engines.emulation.external.sock_diag import LISTEN, SocketTable, TcpSocket


@pytest.fixture(params=["127.0.0.1", "::ffff:127.0.0.1"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket, socket.socket]]:
    """A listener, a connection to it from a client of either family, and what the listener has accepted."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(family) as connecting:
        try:
            connecting.connect((request.param, listener.getsockname()[1]))
        except OSError as error:
            pytest.skip(f"no IPv6 here: {error}")
        accepted, _ = listener.accept()
        with accepted:
            yield listener, connecting, accepted


def found(wanted: socket.socket) -> TcpSocket:
    try:
        table = SocketTable()
        everything = table.read()
        table.close()
    except OSError as error:
        pytest.skip(f"no sock_diag here: {error}")
    inode = os.fstat(wanted.fileno()).st_ino
    return next(each for each in everything if each.inode == inode)


def test_both_ends_of_a_connection_are_listed_with_ipv4_addresses(
    pair: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    listener, connecting, accepted = pair
    here, there = found(connecting), found(accepted)
    assert (here.address, here.port, here.peer, here.peer_port) == (
        "127.0.0.1",
        connecting.getsockname()[1],
        "127.0.0.1",
        listener.getsockname()[1],
    )
    assert (there.port, there.peer_port) == (here.peer_port, here.port)
    assert found(listener).state == LISTEN


def test_bytes_count_once_the_peer_has_acknowledged_them(
    pair: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    _, connecting, accepted = pair
    before = found(connecting).acknowledged
    connecting.sendall(bytes(5000))
    received = 0
    while received < 5000:
        received += len(accepted.recv(5000))
    assert found(connecting).acknowledged - before == 5000
    assert found(connecting).retransmits == 0


def test_the_window_that_an_end_offers_is_told(pair: tuple[socket.socket, socket.socket, socket.socket]) -> None:
    _, connecting, accepted = pair
    connecting.sendall(b"1")
    accepted.recv(1)
    if not (offered := found(accepted).window):
        pytest.skip("this kernel does not tell windows")
    assert 30_000 < offered < 10_000_000


def test_a_socket_is_borrowed_from_the_process_that_holds_it(
    pair: tuple[socket.socket, socket.socket, socket.socket],
) -> None:
    _, connecting, _ = pair
    holder = sockets_of(descendants(os.getpid(), parents()))[found(connecting).inode]
    assert holder == Holder(os.getpid(), connecting.fileno())
    try:
        with borrowed(holder) as other:
            set_mark(other, 0x40)
    except OSError as error:
        pytest.skip(f"no pidfd_getfd here: {error}")
    assert connecting.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0x40


def test_descendants_are_found_through_their_parents() -> None:
    assert descendants(2, {1: 0, 2: 1, 3: 2, 4: 3, 5: 1}) == [2, 3, 4]
