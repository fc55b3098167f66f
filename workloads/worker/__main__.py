"""``python -m workloads.worker FOLDER HOST``: lines of JSON in (what to do), lines of JSON out (what happened)."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys

from workloads.worker.service import WorkerService

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
    WorkerService(*sys.argv[1:]).run()


main()
