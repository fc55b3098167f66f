"""``python -m workloads.worker FOLDER HOST=PID...``: lines of JSON in (what to do), lines of JSON out (what happened).

It serves each HOST in the network namespace of the process PID; without ``=PID``, in its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys

from workloads.worker.process import WorkerProcess

_PR_SET_PDEATHSIG = 1
_PR_SET_TIMERSLACK = 29


def _be_served_first() -> None:
    """Have the kernel serve this process before ordinary ones, where it may: a late worker is a slow GPU."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))


def main() -> None:
    """Serve the engine on standard input and output until it sends quit or closes the input."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_TIMERSLACK, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    _be_served_first()
    folder, *hosts = sys.argv[1:]
    WorkerProcess(folder, dict(map(_host, hosts))).run()


def _host(argument: str) -> tuple[str, int | None]:
    """Return the host and the process id of ``HOST=PID`` or ``HOST``."""
    host, _, pid = argument.partition("=")
    return host, int(pid) if pid else None


main()
