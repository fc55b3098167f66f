"""What a sender does to its flows while they run: marks, rates, pauses.

A packet of a higher level overtakes those of its flow that are still in flight. Emulated hosts
do not mistake that for loss (no selective acknowledgements, no early retransmission), so a mark changes
at once, in the middle of a message too.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
from math import ceil

from topologies.shaping import ACKNOWLEDGEMENT_LEVEL, dscp_of_level

ACKNOWLEDGEMENT_TOS = dscp_of_level(ACKNOWLEDGEMENT_LEVEL) << 2
"""The mark of what a receiver sends, which is acknowledgements alone."""

_TCP_MAXSEG = 2
_SO_MAX_PACING_RATE = 47
_TCP_NOTSENT_LOWAT = 25
_NO_LIMIT = (1 << 64) - 1
_SO_MEMINFO = 55
_SENT_AND_HELD = 2
"""Place of ``SK_MEMINFO_WMEM_ALLOC`` among the 32-bit words of ``SO_MEMINFO``."""


def unacknowledged(connection: socket.socket) -> int:
    """Bytes handed to the kernel that the peer has not acknowledged."""
    return int(struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0])


def waits_at_its_link(connection: socket.socket) -> bool:
    """Whether a packet of ``connection`` is on its way out of this host at the moment."""
    words = connection.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 36)
    return int(struct.unpack_from("I", words, 4 * _SENT_AND_HELD)[0]) > 0


def keep_little_unsent(connection: socket.socket, size: int) -> None:
    """Let the kernel take no more while ``size`` bytes have not left it: a mark changes at the intended byte."""
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, size)


def set_tos(connection: socket.socket, tos: int) -> None:
    """Mark what the kernel sends on ``connection`` from now on."""
    connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)


def segment_of(connection: socket.socket) -> int:
    """Bytes of payload in a full packet."""
    return connection.getsockopt(socket.IPPROTO_TCP, _TCP_MAXSEG)


def head_start(size: int, segment: int, rate: float) -> float:
    """Seconds by which the last packet of a message paced at ``rate`` bytes a second leaves too early for its rate.

    Packets of ``segment`` bytes leave in pairs (tcp_min_tso_segs), the first pair at once; and of the wait after
    that one the kernel forgives half (tcp_update_skb_after_send).
    """
    pairs = ceil(size / (2 * segment))
    return (size - max(0, 2 * pairs - 3) * segment) / rate


def pace(connection: socket.socket, rate: float | None) -> None:
    """Let the kernel send at most ``rate`` bytes of payload a second; None: as fast as it goes."""
    value = _NO_LIMIT if rate is None else max(1, round(rate))
    connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("Q", value))
