"""CompletionNotice from receiver to sender that a message has arrived whole, out of band.

Reliable transports of GPU clusters complete a send when the receiver has acknowledged it, and their
acknowledgements hardly wait. Here those of TCP wait behind data at the flow's level, and the kernel takes bytes long
before they leave: neither shows when a message is complete. So the receiving worker notifies the sending one, by a
datagram socket in the file system that all workers of a run share.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable

from workloads.worker.event_loop import Loop


class CompletionNotice:
    """The datagram socket of ``host`` in ``folder``; ``heard(flow)`` is called for each message that has arrived."""

    def __init__(self, loop: Loop, folder: str, host: str, heard: Callable[[str], None]) -> None:
        self._folder = folder
        self._heard = heard
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(os.path.join(folder, host))
        self._socket.setblocking(False)
        loop.watch(self._socket.fileno(), select.EPOLLIN, self._read)

    def tell(self, host: str, flow: str) -> None:
        """Notify the worker of ``host`` that a message of ``flow`` has arrived; one that has ended needs no notice."""
        try:
            self._socket.sendto(flow.encode(), os.path.join(self._folder, host))
        except (ConnectionRefusedError, FileNotFoundError):
            return

    def _read(self, _events: int) -> None:
        while True:
            try:
                flow = self._socket.recv(1024)
            except BlockingIOError:
                return
            self._heard(flow.decode())
