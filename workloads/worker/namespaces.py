"""Where the sockets of a host are made: a socket stays in the network namespace of its making, whoever has it.

So one process can serve several hosts, and needs no privilege for it: :mod:`workloads.opener` makes the sockets.
"""

from __future__ import annotations

import socket

from workloads.opener.requests import ask


class Namespace:
    """The namespace of this process, or the one with the number ``place`` for the opener at ``connection``."""

    def __init__(self, connection: socket.socket | None = None, place: int = 0) -> None:
        self._connection = connection
        self._place = place
        self._ready: list[socket.socket] = []

    def socket(self) -> socket.socket:
        """Return a new TCP socket there; ``OSError`` if none can be opened."""
        if self._connection is None:
            return socket.socket()
        if not self._ready:
            self.prepare(1)
        return self._ready.pop()

    def prepare(self, count: int) -> None:
        """Have the next ``count`` sockets at hand: asking for them together takes one answer instead of one each."""
        while self._connection is not None and len(self._ready) < count:
            self._ready += ask(self._connection, self._place, count - len(self._ready))
