"""What a sender does to its flows while they run: marks, rates, pauses.

A packet that is sent at a higher level than the one before it would overtake it and look like a
loss, so a flow rises only once nothing of it is in flight; it may fall at any time.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
from bisect import bisect_left
from dataclasses import dataclass

CHANGING = 1
"""A flow is held because its path or level changes in the switches."""
DRAINING = 2
"""A flow is held until what it has in flight has arrived, or been sent: its mark changes."""
NO_RATE = 4
"""A flow is held because its rate is 0."""

_SO_MAX_PACING_RATE = 47
_SIOCOUTQNSD = 0x894B
_NO_LIMIT = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ByteMarks:
    """``IP_TOS`` by a count of a message's bytes, ``left`` or sent: one more mark than ``thresholds``."""

    left: bool
    thresholds: tuple[int, ...]
    marks: tuple[int, ...]

    def at(self, sent: int, size: int) -> tuple[int, int]:
        """Return the mark of the byte at offset ``sent`` of ``size``, and the offset at which it changes."""
        if self.left:
            level = bisect_left(self.thresholds, size - sent)
            return self.marks[level], size - self.thresholds[level - 1] if level else size
        level = bisect_left(self.thresholds, sent + 1)
        return self.marks[level], min(size, self.thresholds[level]) if level < len(self.thresholds) else size


def unacknowledged(connection: socket.socket) -> int:
    """Bytes handed to the kernel that the peer has not acknowledged."""
    return _queued(connection, termios.TIOCOUTQ)


def unsent(connection: socket.socket) -> int:
    """Bytes handed to the kernel that have not left it."""
    return _queued(connection, _SIOCOUTQNSD)


def _queued(connection: socket.socket, request: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(connection.fileno(), request, b"\0\0\0\0"))[0])


def set_tos(connection: socket.socket, tos: int) -> None:
    """Mark what the kernel sends on ``connection`` from now on."""
    connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)


def pace(connection: socket.socket, rate: float | None) -> None:
    """Let the kernel send at most ``rate`` bytes of payload a second; None: as fast as it goes."""
    value = _NO_LIMIT if rate is None else max(1, round(rate))
    connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("Q", value))
