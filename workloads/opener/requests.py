"""Both ends of asking for sockets: a request is which namespace and how many, the answer is that many descriptors."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
from collections.abc import Sequence
from typing import Final

_CLONE_NEWNET: Final = 0x40000000
_REQUEST: Final = struct.Struct("HH")
_ANSWER: Final = struct.Struct("I")
MOST_AT_ONCE: Final = 200
"""The kernel carries at most 253 descriptors in a message."""
_LIBC = ctypes.CDLL(None, use_errno=True)


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends that requests and answers go between, one message each."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def serve(connections: Sequence[socket.socket], namespaces: Sequence[int]) -> None:
    """Open sockets in ``namespaces`` (descriptors) for whoever asks on ``connections``, until all are closed."""
    poll = select.poll()
    asking = {connection.fileno(): connection for connection in connections}
    for descriptor in asking:
        poll.register(descriptor, select.POLLIN)
    while asking:
        for descriptor, _ in poll.poll():
            request = asking[descriptor].recv(_REQUEST.size)
            if len(request) == _REQUEST.size:
                _answer(asking[descriptor], request, namespaces)
            else:
                poll.unregister(descriptor)
                asking.pop(descriptor).close()


def _answer(connection: socket.socket, request: bytes, namespaces: Sequence[int]) -> None:
    place, count = _REQUEST.unpack(request)
    opened: list[socket.socket] = []
    try:
        enter(namespaces[place])
        opened = [socket.socket() for _ in range(min(count, MOST_AT_ONCE))]
        socket.send_fds(connection, [_ANSWER.pack(0)], [each.fileno() for each in opened])
    except OSError as error:
        connection.send(_ANSWER.pack(error.errno or 1))
    finally:
        for each in opened:
            each.close()


def ask(connection: socket.socket, place: int, count: int) -> list[socket.socket]:
    """Return up to ``count`` new TCP sockets in the namespace number ``place``; ``OSError`` if none can be opened."""
    connection.send(_REQUEST.pack(place, min(count, MOST_AT_ONCE)))
    answer, descriptors, _, _ = socket.recv_fds(connection, _ANSWER.size, MOST_AT_ONCE)
    wrong = _ANSWER.unpack(answer)[0] if answer else 0
    if wrong or not descriptors:
        raise OSError(wrong, f"no socket in another namespace: {os.strerror(wrong) if wrong else 'the opener ended'}")
    return [socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=descriptor) for descriptor in descriptors]


def enter(namespace: int) -> None:
    """Make this thread's next sockets in the network namespace of the descriptor ``namespace``."""
    if _LIBC.setns(namespace, _CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")
