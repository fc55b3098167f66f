"""When the last byte of a message has left this host: the kernel stamps its packet as the NIC sends it.

What a worker writes waits in the socket and then in the NIC's queue; a sender that went on as soon as
the kernel had taken its last byte would be ahead of its link by all that waits. Sockets report the
moment a packet is handed to the driver, after its queueing discipline, on their error queue
(``SO_TIMESTAMPING`` in socket(7), the kernel's networking/timestamping.rst).
"""

from __future__ import annotations

import socket
import struct
from typing import Final

_SO_TIMESTAMPING: Final = 37
_STAMP_PACKETS: Final = 1 << 1
_REPORT: Final = 1 << 4
_NUMBER_BYTES: Final = 1 << 7
_NUMBER_FROM_NEXT_BYTE: Final = 1 << 16
_STAMPS_ONLY: Final = 1 << 11
_ANCILLARY_BYTES: Final = 512
_EXTENDED_ERROR: Final = struct.Struct("IBBBBII")
_NUMBERS: Final = 1 << 32


class Departures:
    """Whether what was sent on ``connection`` to the end of a message has left; nothing was sent on it before."""

    __slots__ = ("_connection", "_handed", "waiting")

    def __init__(self, connection: socket.socket) -> None:
        options = _REPORT | _NUMBER_BYTES | _NUMBER_FROM_NEXT_BYTE | _STAMPS_ONLY
        connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, options)
        self._connection = connection
        self._handed = 0
        self.waiting = False
        """Whether the last byte of a message is in the kernel and has not left."""

    def send(self, data: memoryview, *, to_the_end: bool) -> int:
        """Send what there is room for, return how much; if all went and it ends a message, wait for its last byte."""
        if to_the_end:
            stamp = [(socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("I", _STAMP_PACKETS))]
            sent = self._connection.sendmsg([data], stamp)
            self.waiting = sent == len(data)
        else:
            sent = self._connection.send(data)
        self._handed = (self._handed + sent) % _NUMBERS
        return sent

    def read(self) -> bool:
        """Take in the stamps that have come; return whether there were any."""
        found = False
        while True:
            try:
                _, ancillary, _, _ = self._connection.recvmsg(1, _ANCILLARY_BYTES, socket.MSG_ERRQUEUE)
            except BlockingIOError:
                return found
            found = True
            if any(self._is_last(data) for level, _, data in ancillary if level == socket.IPPROTO_IP):
                self.waiting = False

    def _is_last(self, data: bytes) -> bool:
        """A stamp names the last byte of what one call sent; one of an earlier, partial call comes as well."""
        number = int(_EXTENDED_ERROR.unpack_from(data)[6])
        return number == (self._handed - 1) % _NUMBERS
