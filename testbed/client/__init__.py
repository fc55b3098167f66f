"""For real programs that run as jobs: tell the testbed when an iteration begins and ends. Standard library only.

::

    from testbed import client

    while True:
        with client.iteration():
            compute()
            with client.communication():
                exchange()

The first iteration waits until all jobs of the run are ready, and then begins together with theirs. What is outside of
``communication`` counts as compute. A loop that cannot be wrapped calls :func:`iteration_done` instead.

Outside of a run all of this does nothing, so a program needs no second version. A program that is done with its work
goes on until the testbed ends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator

SOCKET = "TESTBED_CLIENT"
"""Environment variable with the path of the socket that takes the reports."""
POLL_S = 0.0005

__all__ = ["communication", "iteration", "iteration_done", "wait"]


class _Reporter:
    """The connection of this process to the testbed; ``connection`` is None outside of a run."""

    def __init__(self) -> None:
        self.connection: socket.socket | None = None
        self.begun = False
        self.start = 0.0
        self.spans: list[tuple[float, float]] = []

    def begin(self) -> None:
        """Begin an iteration now; the first one when all jobs are ready."""
        if not self.begun:
            self.begun = True
            self._await_start()
        self.start = time.monotonic()
        self.spans = []

    def _await_start(self) -> None:
        path = os.environ.get(SOCKET)
        if not path:
            return
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.connection.connect(path)
        self._say({"ready": os.getpid()})
        self.connection.recv(1)  # also returns when the run is over, which ends this process anyway

    def end(self) -> None:
        """Report the iteration."""
        self._say({"start": self.start, "communication": self.spans, "end": time.monotonic()})

    def _say(self, message: dict[str, object]) -> None:
        if self.connection is None:
            return
        with contextlib.suppress(OSError):  # the run is over
            self.connection.sendall(json.dumps(message).encode() + b"\n")


_reporter = _Reporter()


@contextlib.contextmanager
def iteration() -> Iterator[None]:
    """What happens in the context is an iteration; one that raises is not reported."""
    _reporter.begin()
    yield
    _reporter.end()


@contextlib.contextmanager
def communication() -> Iterator[None]:
    """What happens in the context is communication, of an iteration that has begun."""
    begun = time.monotonic()
    try:
        yield
    finally:
        _reporter.spans.append((begun, time.monotonic()))


def iteration_done() -> None:
    """An iteration has ended and the next begins; the first call only says that the program is ready."""
    if _reporter.begun:
        _reporter.end()
    _reporter.begin()


def wait(done: Callable[[], bool]) -> None:
    """Return when ``done`` says so, such as ``request.Test`` of mpi4py, and sleep in between.

    MPI waits by asking again and again, which takes a whole CPU. The emulation needs that CPU.
    """
    while not done():
        time.sleep(POLL_S)
