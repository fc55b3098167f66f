"""The namespaces that hold a run, and the lock that keeps a second run from starting beside it.

Everything a run makes lives in network, mount and PID namespaces of its own: when their first
process ends, however it ends, the kernel ends all others and removes every interface. That
process dies with its parent. The lock is a socket name that exists as long as its owner.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import CannotRunError
from testbed.machine.ownership import MARK, own_mark

PACKAGES = Path(__file__).resolve().parents[3]
"""The folder of the four packages, from which child processes import them."""
_PR_SET_PDEATHSIG = 1
_LOCK_NAME = "\0testbed-emulation"
_LIBC = ctypes.CDLL(None)

UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")


@contextmanager
def only_run_on_this_machine() -> Iterator[None]:
    """Hold the lock; ``CannotRunError`` if another run has it. Two runs would disturb each other's timing."""
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        lock.bind(_LOCK_NAME)
    except OSError as error:
        lock.close()
        raise CannotRunError("another emulation is running on this machine: wait for it, or stop it") from error
    try:
        yield
    finally:
        lock.close()


def spawn(module: str, argument: Path, log: Path) -> subprocess.Popen[str]:
    """Start ``python -m module argument`` in namespaces of its own; its standard output is a pipe."""
    # The testbed's own modules first; then where the user keeps others, such as a scheduler of his own.
    places = [str(PACKAGES), os.environ.get("PYTHONPATH", "")]
    quiet = {
        "OPENBLAS_NUM_THREADS": "1",
        MARK: own_mark(),
    }  # idle BLAS threads spin, beside workers that must be on time
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, places)), **quiet)
    parent = os.getpid()

    def die_with_parent() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    with log.open("ab") as output:
        return subprocess.Popen(
            [*UNSHARE, "--", sys.executable, "-m", module, str(argument)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            env=environment,
            preexec_fn=die_with_parent,
            start_new_session=True,
        )
