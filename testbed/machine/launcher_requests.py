"""Asking for what needs root, from a process that has given root up.

:mod:`testbed.engines.emulation.privileged.launcher` is at the other end.

A request is one message with the descriptors that it is about. The first of these is one end of a socket of the
request's own: answers come over it, and the request lasts until it is closed, by whichever process it ends with.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

PLACE: Final = "TESTBED_LAUNCHER"
"""Environment variable: the descriptor of the socket to the launcher."""
NUMBER: Final = struct.Struct("i")
"""What is told of a process: first its id, at its end its status as :mod:`subprocess` has it."""
LARGEST: Final = 1 << 16
MOST_DESCRIPTORS: Final = 8


@cache
def _connection() -> socket.socket | None:
    # Taken out of the environment: programs that this process starts do not have the descriptor.
    place = os.environ.pop(PLACE, "")
    if not place.isdigit():
        return None
    try:
        found = socket.socket(fileno=int(place))
    except OSError:
        return None
    found.set_inheritable(False)
    return found


def present() -> bool:
    """Whether there is a launcher to ask."""
    return _connection() is not None


def request(what: str, descriptors: Sequence[int] = (), **values: Any) -> socket.socket:
    """Ask for ``what`` and return the socket of the request; ``OSError`` if the launcher has ended."""
    connection = _connection()
    assert connection is not None
    mine, theirs = socket.socketpair()
    with theirs:
        message = json.dumps({"what": what, **values}).encode()
        socket.send_fds(connection, [message], [theirs.fileno(), *descriptors])
    return mine


def ask(what: str, **values: Any) -> Any:
    """Ask for ``what`` and return the answer, parsed JSON; ``OSError`` or ``ValueError`` if there is none."""
    with request(what, **values) as mine:
        return json.loads(mine.makefile("rb").read())
