"""CompletionNotice from receiver to sender that a message has arrived whole, out of band.

Reliable transports of GPU clusters complete a send when the receiver has acknowledged it, and their
acknowledgements hardly wait. Here a program does not see those of TCP, and the kernel takes bytes long before they
leave: neither shows when a message is complete. So the receiving worker notifies the sending one, by a
datagram socket in the file system that all workers of a run share.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from workloads.worker.event_loop import Loop

Heard = Callable[[str, str], None]

_AGAIN_S: Final = 0.0002
"""After this a notice is sent again that its receiver had no room for."""


class CompletionNotice:
    """The datagram socket of ``hosts``, all of this process, in ``folder``.

    ``heard(host, flow)`` is called for each message from ``host`` that has arrived. The socket has the name of the
    first host; those of the others are links to it, so that nobody needs to know which hosts share a process.
    """

    def __init__(self, loop: Loop, folder: str, hosts: Sequence[str], heard: Heard) -> None:
        self._loop = loop
        self._folder = folder
        self._hosts = frozenset(hosts)
        self._heard = heard
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(os.path.join(folder, hosts[0]))
        self._socket.setblocking(False)
        for host in hosts[1:]:
            os.symlink(hosts[0], os.path.join(folder, host))
        loop.watch(self._socket.fileno(), select.EPOLLIN, self._read)

    def tell(self, host: str, flow: str) -> None:
        """Notify the worker of ``host`` that a message of ``flow`` has arrived; one that has ended needs no notice.

        A host of this process hears of it in the loop's next turn, as from a socket: never while its job is at work.
        """
        if host in self._hosts:
            self._loop.at(self._loop.clock(), partial(self._hear, host, flow))
            return
        try:
            self._socket.sendto(f"{host} {flow}".encode(), os.path.join(self._folder, host))
        except BlockingIOError:
            # The kernel queues eleven datagrams for a process that is busy.
            self._loop.at(self._loop.clock() + _AGAIN_S, lambda _late: self.tell(host, flow))
        except (ConnectionRefusedError, FileNotFoundError):
            return

    def close(self) -> None:
        """Hear no more."""
        self._loop.forget(self._socket.fileno())
        self._socket.close()

    def _hear(self, host: str, flow: str, _late: float) -> None:
        self._heard(host, flow)

    def _read(self, _events: int) -> None:
        while True:
            try:
                notice = self._socket.recv(1024)
            except BlockingIOError:
                return
            host, _, flow = notice.decode().partition(" ")
            self._heard(host, flow)
