"""``python -m workloads.opener CONNECTIONS NAMESPACES``: opens sockets in network namespaces for the workers of a run.

Both arguments are descriptors with commas between them: of sockets that workers have the other ends of, and of
namespaces. It ends when no worker is left.
"""

from __future__ import annotations

import ctypes
import signal
import socket
import sys

from workloads.opener.requests import serve

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve the descriptors that the command line names."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connections, namespaces = ([int(word) for word in argument.split(",")] for argument in sys.argv[1:])
    serve([socket.socket(fileno=descriptor) for descriptor in connections], namespaces)


main()
