"""A run seen from outside its namespaces: what it tells, whether it is still there, and its end.

The inside tells at least once a second that it is alive
(:mod:`testbed.engines.emulation.namespaces.liveness`). If it is silent, its first process is
stopped, starved or stuck, and nothing inside can say so.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from testbed.engines.emulation.namespaces.sandbox import Child
from testbed.errors import RunFailedError

ALIVE: Final = "alive"
"""The phase of messages that only say that the run is there."""
SILENCE_S: Final = 10
"""Whole seconds without a word after which a run is ended."""
START_S: Final = 30
"""As long may it take to the first word: Python starts, and imports what a run needs."""
GONE_S: Final = 10
SHOW_STACKS: Final = signal.SIGUSR1
"""At this signal the first process writes to its log what each of its threads is doing."""
STACKS_S: Final = 0.5
_STATES: Final = {"T": "is stopped", "t": "is held by a debugger", "D": "waits for a device", "Z": "has ended"}


class Watchdog:
    """Watches ``child``, the process that made the namespaces and waits for the first one in them."""

    def __init__(self, child: Child, log: Path) -> None:
        self._child = child
        self._log = log
        self._first = 0
        self._handle = -1

    def messages(self) -> Iterator[dict[str, Any]]:
        """What the run tells, until it has nothing more to tell.

        Raises ``RunFailedError``, one line, if it is silent for longer than :data:`SILENCE_S`.
        """
        for line in self._lines():
            message = _parsed(line)
            if message.get("phase", ALIVE) != ALIVE:
                yield message

    def _lines(self) -> Iterator[bytes]:
        assert self._child.stdout is not None
        output = self._child.stdout.fileno()
        poller = select.poll()
        poller.register(output, select.POLLIN | select.POLLHUP)
        rest, silent, allowed = b"", 0, START_S
        while True:
            # Counted in waits, not read from a clock: this process may have been stopped itself.
            ready = dict(poller.poll(1000))
            if not ready:
                silent += 1
                if silent >= allowed:
                    raise RunFailedError(self._silence(silent))
                continue
            data = os.read(output, 1 << 16) if output in ready else b""
            if not data:
                return  # closed, or the first process has ended: the one that waits for it may be stopped
            if self._find_first():
                poller.register(self._handle, select.POLLIN)
            silent, allowed = 0, SILENCE_S
            *lines, rest = (rest + data).split(b"\n")
            yield from lines

    def _silence(self, silent: int) -> str:
        self._find_first()
        state = _STATES.get(_state_of(self._first), "does not answer")
        self._show_stacks()
        return f"the run said nothing for {silent} s: its first process ({self._first}) {state}, see {self._log}"

    def _show_stacks(self) -> None:
        """Have the first process write where it is stuck; one that is stopped does not."""
        if self._handle >= 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._handle, SHOW_STACKS)
                time.sleep(STACKS_S)

    def _find_first(self) -> bool:
        """Hold a handle of the first process in the namespaces; whether it is a new one."""
        if self._handle >= 0:
            return False
        parent = self._child.pid
        with contextlib.suppress(OSError, IndexError, ValueError):
            self._first = int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])
            self._handle = os.pidfd_open(self._first)
        return self._handle >= 0

    def wait(self) -> None:
        """Return when the run has ended by itself; ``RunFailedError`` if its first process was ended, or failed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            # unshare does not always hand on by which signal its child was ended.
            if self._child.wait(SILENCE_S) != 0:
                if not self._log.parent.is_dir():
                    raise RunFailedError(f"{self._log.parent}: this directory was removed meanwhile")
                why = "somebody ended it, memory ran out, or it failed"
                raise RunFailedError(
                    f"the run's first process ended before its record was there: {why}, see {self._log}"
                )

    def end(self) -> None:
        """End the run, however it stands; return when none of its processes is left."""
        self._find_first()
        self._child.kill()
        self._child.wait()
        if self._handle < 0:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):  # root's, under sudo: it ends with its parent
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        # It ends after all others in its namespace have.
        poller = select.poll()
        poller.register(self._handle, select.POLLIN)
        poller.poll(1000 * GONE_S)
        os.close(self._handle)
        self._handle = -1


def _state_of(pid: int) -> str:
    """``R``, ``S``, ``T`` ... as in ``/proc/PID/stat``; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _parsed(line: bytes) -> dict[str, Any]:
    """The message in ``line``; empty for one that was cut off when its writer ended."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
