"""``python -m workloads.worker FOLDER [--opener=FD] HOST[=PLACE]...``: lines of JSON in, lines of JSON out.

In: what to do. Out: what happened. It serves each HOST in the network namespace that has the number PLACE for the
:mod:`workloads.opener` at the other end of the socket FD; without one, in its own.
"""

from __future__ import annotations

import ctypes
import gc
import signal
import socket
import sys

from workloads.worker.namespaces import Namespace
from workloads.worker.process import WorkerProcess

_PR_SET_PDEATHSIG = 1
_PR_SET_TIMERSLACK = 29
_OPENER = "--opener="


def main() -> None:
    """Serve the engine on standard input and output until it sends quit or closes the input."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_TIMERSLACK, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    folder, *hosts = sys.argv[1:]
    opener = None
    if hosts[0].startswith(_OPENER):
        opener = socket.socket(fileno=int(hosts.pop(0).removeprefix(_OPENER)))
    WorkerProcess(folder, {host.partition("=")[0]: _namespace(opener, host) for host in hosts}).run()


def _namespace(opener: socket.socket | None, argument: str) -> Namespace:
    """Return the namespace of ``HOST=PLACE`` or ``HOST``."""
    place = argument.partition("=")[2]
    return Namespace(opener, int(place)) if place else Namespace()


main()
