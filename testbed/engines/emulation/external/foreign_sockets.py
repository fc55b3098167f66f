"""Options on the sockets of a real program: the marks, windows and rates that workers set on theirs.

A program knows nothing of levels. Its sockets are borrowed (``pidfd_getfd``) for the moment that it takes to set an
option.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
from collections.abc import Iterator
from typing import Final

from testbed.engines.emulation.external.processes import Holder
from workloads.worker.socket_options import pace
from workloads.worker.tcp_endpoints import BUFFERED_WINDOWS, prepare

_PIDFD_GETFD: Final = 438
_IPV6_TCLASS: Final = 67
_SO_SNDBUFFORCE: Final = 32
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def borrowed(holder: Holder) -> Iterator[socket.socket]:
    """The socket that ``holder`` names; ``OSError`` if it is gone, or the kernel refuses."""
    process = os.pidfd_open(holder.pid)
    try:
        descriptor = _LIBC.syscall(_PIDFD_GETFD, process, holder.descriptor, 0)
        if descriptor < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"a socket of process {holder.pid}: {os.strerror(number)}")
    finally:
        os.close(process)
    with socket.socket(fileno=descriptor) as connection:
        yield connection


def set_window(connection: socket.socket, window: int) -> None:
    """Let at most ``window`` bytes be in flight, and the kernel buffer a few times that, whatever the system allows."""
    prepare(connection, window)
    connection.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, BUFFERED_WINDOWS * window)


def set_mark(connection: socket.socket, tos: int) -> None:
    """Mark what leaves on ``connection`` from now on."""
    connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    if connection.family == socket.AF_INET6:
        connection.setsockopt(socket.IPPROTO_IPV6, _IPV6_TCLASS, tos)


def set_rate(connection: socket.socket, rate: float | None) -> None:
    """Let the kernel send at most ``rate`` bytes a second; None: as fast as it goes."""
    pace(connection, rate)
