"""The inside of a run tells that it is alive, and ends when a process that it needs does not go on.

Two things end a run: a process of it that has ended, at once; and one that is stopped while the run waits for it.
While iterations are measured a stopped process is evidence, not yet the end: it may go on.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from testbed.engines.emulation.namespaces.watchdog import ALIVE
from testbed.engines.emulation.probes.proc_files import ProcFiles
from testbed.engines.emulation.probes.process_watch import STOPPED, state_of
from testbed.errors import RunFailedError

BEAT_S: Final = 1.0
BLOCKED_S: Final = 60.0
"""As long as a command may take that sets up the network or takes it down; the event loop waits for it."""
LOOK_S: Final = 0.5
STOPPED_S: Final = 3.0
"""A process that is waited for may be stopped this long."""

Made = TypeVar("Made")


class Heartbeat:
    """Calls ``tell("alive")`` once a second, as long as the event loop turns or may be blocked.

    Make it in the loop. It beats until the process ends: what comes after the loop, such as handing over the record,
    may take as long as a command.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._turned = time.monotonic()
        self._allowed = BLOCKED_S
        self._turning = asyncio.create_task(self._turn())
        threading.Thread(target=self._beat, daemon=True).start()

    def measuring(self, now: bool) -> None:
        """While iterations are measured no command blocks the loop."""
        self._allowed = 0.0 if now else BLOCKED_S

    def stop(self) -> None:
        """The loop is about to end."""
        self.measuring(False)
        self._turning.cancel()

    async def _turn(self) -> None:
        while True:
            self._turned = time.monotonic()
            await asyncio.sleep(BEAT_S / 2)

    def _beat(self) -> None:
        while True:
            if time.monotonic() - self._turned <= BEAT_S + self._allowed:
                self._tell(ALIVE)
            time.sleep(BEAT_S)


class Guard:
    """Watches the processes of a run.

    ``ended`` names one that has ended, in words, or None; ``needed`` returns name -> process id of those that answer.
    """

    def __init__(self, ended: Callable[[], str | None], needed: Callable[[], Mapping[str, int]]) -> None:
        self._ended = ended
        self._needed = needed
        self._stopped: dict[str, float] = {}
        self._files = ProcFiles()
        self.waiting = True
        """Whether the run waits for its processes, rather than measures."""

    async def over(self, work: Coroutine[Any, Any, Made]) -> Made:
        """Return what ``work`` does; ``RunFailedError`` as soon as a process does not go on, and ``work`` is ended."""
        doing, watching = asyncio.create_task(work), asyncio.create_task(self._watch())
        try:
            await asyncio.wait({doing, watching}, return_when=asyncio.FIRST_COMPLETED)
            return doing.result() if doing.done() else watching.result()
        finally:
            for task in (doing, watching):
                task.cancel()
            await asyncio.gather(doing, watching, return_exceptions=True)
            self._files.close()

    async def _watch(self) -> Any:
        while True:
            self.look(time.monotonic())
            await asyncio.sleep(LOOK_S)

    def look(self, now: float) -> None:
        """Look at all processes at ``now``; raises ``RunFailedError``."""
        if (why := self._ended()) is not None:
            raise RunFailedError(why)
        needed = self._needed()
        stopped = [name for name, pid in needed.items() if state_of(pid, pid, self._files) in STOPPED]
        self._stopped = {name: self._stopped.get(name, now) for name in stopped}
        if self.waiting:
            self.refuse_stopped(now)

    def refuse_stopped(self, now: float) -> None:
        """Raise ``RunFailedError`` if a process has been stopped for :data:`STOPPED_S`: the run would wait for it."""
        for name, since in self._stopped.items():
            if now - since >= STOPPED_S:
                why = "by a signal, a debugger or a frozen control group"
                raise RunFailedError(f"{name} has been stopped for {now - since:.0f} s ({why}), the run waits for it")


def ended_how(status: int) -> str:
    """``was ended by a signal (Killed)`` or ``ended with status 1``."""
    if status >= 0:
        return f"ended with status {status}"
    return f"was ended by a signal ({signal.strsignal(-status) or -status})"
