"""``python3 -m testbed.client.examples.exchange BYTES COMPUTE_S [--silent]``: every host sends BYTES to the next one.

The smallest program that a job can be: plain sockets, the standard library alone. With ``--silent`` it reports nothing,
so that its iterations have to be found in its traffic (``progress: traffic``).
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator

from testbed import client


def connections(rank: int, addresses: list[str], port: int) -> tuple[socket.socket, socket.socket]:
    """Return a connection to the next host and one from the previous."""
    listener = socket.create_server((addresses[rank], port))
    following = addresses[(rank + 1) % len(addresses)]
    while True:
        try:
            to = socket.create_connection((following, port), source_address=(addresses[rank], 0))
            break
        except ConnectionRefusedError:  # it does not listen yet
            time.sleep(0.05)
    return to, listener.accept()[0]


def exchange(to: socket.socket, of: socket.socket, size: int) -> None:
    """Send ``size`` bytes and receive as many, at once; return when the next host has all of them."""
    sender = threading.Thread(target=to.sendall, args=(bytes(size),))
    sender.start()
    left = size
    while left:
        left -= len(of.recv(min(left, 1 << 16)))
    sender.join()
    of.sendall(b"!")
    to.recv(1)


@contextlib.contextmanager
def unreported() -> Iterator[None]:
    """In place of what reports."""
    yield


def main(size: int, compute_s: float, silent: bool) -> None:
    """Pause for ``compute_s``, then exchange ``size`` bytes; again and again."""
    rank, port = int(os.environ["TESTBED_RANK"]), int(os.environ["TESTBED_PORT"])
    to, of = connections(rank, os.environ["TESTBED_ADDRESSES"].split(","), port)
    print(f"user {os.geteuid()} on {socket.gethostname()}", to.getsockname(), "to", to.getpeername())
    while True:
        with unreported() if silent else client.iteration():
            time.sleep(compute_s)
            with unreported() if silent else client.communication():
                exchange(to, of, size)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), "--silent" in sys.argv)
