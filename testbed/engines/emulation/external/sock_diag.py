"""The TCP sockets of a network namespace, as the kernel lists them over netlink (``sock_diag``).

A dump of a host's few sockets costs some ten microseconds, so it can be asked for many times a second.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from testbed.engines.emulation.probes.netlink import REQUEST_DUMP
from topologies.mininet_adapter.netlink_messages import ATTRIBUTE, HEADER, packed

OPENING: Final = frozenset({2, 3, 12})
"""States of a connection that is being opened: SYN_SENT, SYN_RECV, NEW_SYN_RECV."""
TIME_WAIT: Final = 6
LISTEN: Final = 10

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_INET_DIAG_INFO: Final = 2
_DONE, _ERROR = 3, 2
_ALL_STATES: Final = 0xFFF
_REQUEST: Final = struct.Struct("=BBBBI48x")
"""``inet_diag_req_v2``: family, protocol, extensions, padding, states; no particular socket."""
_MESSAGE: Final = struct.Struct("=BBBB2s2s16s16sI8sIIIII")
"""``inet_diag_msg``: family, state, .., ports, addresses, interface, cookie, expires, queues, uid, inode."""
_RETRANSMITS: Final = 100
_BYTES_ACKED: Final = 120
_RECEIVE_WINDOW: Final = 232
"""Offsets in ``tcp_info`` of segments sent again, of bytes that the peer has acknowledged, and of the window that this
end offers (older kernels do not tell)."""
_LARGEST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """A TCP socket: its state, both ends, and what it has sent; ``inode`` 0 where no process holds it (any more).

    ``window``: bytes that its peer may have in flight, 0 where the kernel does not tell.
    """

    state: int
    address: str
    port: int
    peer: str
    peer_port: int
    inode: int
    acknowledged: int = 0
    retransmits: int = 0
    window: int = 0


class SocketTable:
    """The sockets of the network namespace in which this is made, whichever the caller is in later."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        self._socket.settimeout(5.0)

    def read(self) -> list[TcpSocket]:
        """Return all TCP sockets, those of IPv6 programs with IPv4 peers too; ``OSError`` if the kernel lists none."""
        return [found for family in (socket.AF_INET, socket.AF_INET6) for found in self._dump(family)]

    def _dump(self, family: int) -> Iterator[TcpSocket]:
        request = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 0, _ALL_STATES)
        self._socket.send(packed(_SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, request))
        while True:
            data = self._socket.recv(_LARGEST)
            for kind, body in _messages(data):
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    number = -struct.unpack_from("=i", body)[0]
                    raise OSError(number, "the kernel does not list sockets (sock_diag)")
                yield parsed(body)

    def close(self) -> None:
        """Ask no more."""
        self._socket.close()


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + HEADER.size <= len(data):
        length, kind, *_ = HEADER.unpack_from(data, offset)
        yield kind, data[offset + HEADER.size : offset + length]
        offset += (length + 3) & ~3


def parsed(body: bytes) -> TcpSocket:
    """Return the socket that a message describes."""
    family, state, _, _, port, peer_port, address, peer, *_, inode = _MESSAGE.unpack_from(body)
    info = _attribute(body, _INET_DIAG_INFO)
    return TcpSocket(
        state,
        _text(family, address),
        int.from_bytes(port, "big"),
        _text(family, peer),
        int.from_bytes(peer_port, "big"),
        inode,
        _number(info, "=Q", _BYTES_ACKED),
        _number(info, "=I", _RETRANSMITS),
        _number(info, "=I", _RECEIVE_WINDOW),
    )


def _number(info: bytes, kind: str, offset: int) -> int:
    """What ``tcp_info`` has at ``offset``; 0 where this kernel's is shorter."""
    whole = len(info) >= offset + struct.calcsize(kind)
    return int(struct.unpack_from(kind, info, offset)[0]) if whole else 0


def _attribute(body: bytes, wanted: int) -> bytes:
    offset = _MESSAGE.size
    while offset + ATTRIBUTE.size <= len(body):
        length, kind = ATTRIBUTE.unpack_from(body, offset)
        if kind == wanted:
            return body[offset + ATTRIBUTE.size : offset + length]
        offset += max(ATTRIBUTE.size, (length + 3) & ~3)
    return b""


def _text(family: int, address: bytes) -> str:
    """The address in words; an IPv4 address that an IPv6 socket carries as IPv4."""
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, address[:4])
    if address[:12] == bytes(10) + b"\xff\xff":
        return socket.inet_ntop(socket.AF_INET, address[12:])
    return socket.inet_ntop(socket.AF_INET6, address)
