"""The namespaces that hold a run, and the lock that keeps a second run from starting beside it.

Everything a run makes lives in network, mount and PID namespaces of its own: when their first
process ends, however it ends, the kernel ends all others and removes every interface. That
process dies with its parent. The lock is on a file that only root may open, and lasts as long as its holder.

Both need root. A command that has given root up asks its launcher for them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, Protocol

from testbed.engines.emulation.namespaces.handover import sealed
from testbed.errors import CannotRunError
from testbed.machine import launcher_requests
from testbed.machine.child_python import child_environment, python_module
from testbed.machine.file_lock import FileLock
from testbed.machine.ownership import MARK, own_mark

SANDBOX: Final = "testbed.engines.emulation.namespaces.sandbox_main"
LOCK: Final = Path("/run/testbed.lock")
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)

UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")


class Child(Protocol):
    """A process in namespaces of its own; ``stdout`` is what it says."""

    @property
    def stdout(self) -> IO[str] | None:
        """Its standard output."""
        ...

    @property
    def pid(self) -> int:
        """The process that made the namespaces and waits for the first one in them."""
        ...

    def kill(self) -> None:
        """End it and everything it has started."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended, and return its status; ``subprocess.TimeoutExpired`` after ``timeout`` seconds."""
        ...


@contextmanager
def only_run_on_this_machine() -> Iterator[None]:
    """Hold the lock; ``CannotRunError`` if another run has it. Two runs would disturb each other's timing."""
    with _asked_lock() if launcher_requests.present() else _own_lock():
        yield


@contextmanager
def _own_lock() -> Iterator[None]:
    try:
        lock = FileLock.take(LOCK)
    except OSError as error:
        raise CannotRunError(f"{LOCK}: {error.strerror}: an emulation locks this file to be alone") from error
    if lock is None:
        raise _busy()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _asked_lock() -> Iterator[None]:
    with launcher_requests.request("lock") as life:
        if (said := life.recv(1)) == b"0":
            raise _busy()
        if said != b"1":
            raise CannotRunError(f"{LOCK} cannot be locked: an emulation locks this file to be alone")
        try:
            yield
        finally:
            with suppress(OSError):
                life.shutdown(socket.SHUT_WR)
                life.recv(1)  # the launcher closes its end when it has released the lock


def _busy() -> CannotRunError:
    return CannotRunError("another emulation is running on this machine: wait for it, or stop it")


def spawn(module: str, request: bytes, log: Path) -> Child:
    """Start ``python -m module`` in namespaces of its own; it reads ``request``, and its errors go to ``log``.

    ``OSError`` if the log cannot be written, or is a link: what is in a run's folder must not say which file grows.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    output = os.open(log, flags, 0o666)
    try:
        with sealed(request) as given:
            if launcher_requests.present() and module == SANDBOX:
                return _AskedChild(given, output)
            return start(module, own_mark(), given, subprocess.PIPE, output)
    finally:
        os.close(output)


def start(module: str, mark: str, given: int, said: int, log: int) -> subprocess.Popen[str]:
    """Start the process with these three descriptors; it carries the ``mark`` of its run and dies with this process."""
    parent = os.getpid()

    def die_with_parent() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return subprocess.Popen(
        [*UNSHARE, "--", *python_module(module)],
        stdin=given,
        stdout=said,
        stderr=log,
        text=True,
        env=child_environment(OPENBLAS_NUM_THREADS="1", **{MARK: mark}),
        preexec_fn=die_with_parent,
        start_new_session=True,
    )


class _AskedChild:
    """A sandbox that the launcher has started: it ends with this process, or when it is killed."""

    def __init__(self, given: int, log: int) -> None:
        said, write = os.pipe()
        self.stdout: IO[str] | None = os.fdopen(said)
        self._status: int | None = None
        try:
            self._life: socket.socket = launcher_requests.request("run", (given, write, log), mark=own_mark())
        finally:
            os.close(write)
        self.pid = self._number()

    def _number(self) -> int:
        """The next number that the launcher tells; -SIGKILL where it has ended itself, which ends the sandbox."""
        said = self._life.recv(launcher_requests.NUMBER.size, socket.MSG_WAITALL)
        found: int = (
            launcher_requests.NUMBER.unpack(said)[0] if len(said) == launcher_requests.NUMBER.size else -signal.SIGKILL
        )
        return found

    def kill(self) -> None:
        """Tell the launcher that nobody wants it any more, unless it has ended."""
        with suppress(OSError):
            self._life.shutdown(socket.SHUT_WR)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the launcher has seen it end."""
        if self._status is None:
            self._life.settimeout(timeout)
            try:
                self._status = self._number()
            except TimeoutError:
                raise subprocess.TimeoutExpired(SANDBOX, timeout or 0.0) from None
            self._life.close()
        return self._status
