"""The command of a real program on one host: in the host's namespace, without privileges, its output kept."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from testbed.engines.emulation.external.processes import descendants, parents
from testbed.engines.emulation.namespaces.liveness import ended_how
from testbed.errors import RunFailedError
from testbed.machine.child_python import module_path
from testbed.machine.ownership import MARK
from testbed.machine.privileges import User, plain_user, unprivileged
from topologies.limits import one_line

_PR_SET_CHILD_SUBREAPER: Final = 36
_LIBC = ctypes.CDLL(None)
_LONGEST_LINE: Final = 1 << 16
MOST_OUTPUT: Final = 8 << 20
"""Characters of a command's output that are kept."""
GRACE_S: Final = 1.0
"""As long may its processes take to end by themselves."""
_KEPT: Final = ("LANG", "LC_ALL", "PATH", "TZ", MARK)
"""What a command gets of the environment of the run."""

Output = Callable[[str, str], None]
"""(host, line) of what a command says."""


def user_of_commands() -> User | None:
    """Return as whom commands run: the user who called sudo, else nobody; None for a caller who is not root.

    ``RunFailedError`` where that would be root.
    """
    user = plain_user()
    if user is None and os.geteuid() == 0:
        raise RunFailedError(
            "a job of kind external does not run as root, and neither the user who called sudo nor 'nobody' may read "
            "the testbed's code: install it where others may read it"
        )
    return user


def environment_of(user: User | None, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command: little of the run's, and ``more``."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    home = os.environ.get("HOME", "/") if user is None else user.home
    name = {} if user is None or not user.name else {"USER": user.name, "LOGNAME": user.name}
    return {**kept, **name, "HOME": home, "PYTHONPATH": module_path(""), "PYTHONUNBUFFERED": "1", **more}


class Command:
    """A command on ``host``, whose namespace that of the process ``pid`` is; ``output`` gets every line it says."""

    def __init__(self, host: str, output: Output) -> None:
        self.host = host
        self._output = output
        self._process: asyncio.subprocess.Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._kept = 0
        self._last = ""
        self._ended_at: float | None = None
        self.ending = False

    async def start(
        self, pid: int, user: User | None, words: Sequence[str], environment: Mapping[str, str], directory: str
    ) -> None:
        """Start it in ``directory``; it has a host name of its own, and no privileges whatever.

        ``RunFailedError`` if the namespace cannot be entered. A command that does not exist ends at once, with a line.
        """
        own_name = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.host]
        enter = ["nsenter", f"--net=/proc/{pid}/ns/net", "--", *own_name]
        try:
            self._process = await asyncio.create_subprocess_exec(
                *enter,
                *unprivileged(list(words), user),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment_of(user, environment),
                cwd=directory,
                limit=_LONGEST_LINE,
                preexec_fn=_adopt_orphans,
                start_new_session=True,
            )
        except OSError as error:
            raise RunFailedError(f"the command on host {self.host} cannot be started: {error}") from error
        assert self._process.stdout is not None and self._process.stderr is not None
        for stream, wrong in ((self._process.stdout, False), (self._process.stderr, True)):
            self._readers.append(asyncio.create_task(self._read(stream, wrong)))

    async def _read(self, stream: asyncio.StreamReader, wrong: bool) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # longer than any line should be: what there is of it is dropped
                continue
            if not line:
                return
            text = one_line(line.decode("utf-8", "replace").rstrip("\r\n"))
            if wrong and text.strip():
                self._last = text.strip()
            if self._kept <= MOST_OUTPUT:
                self._kept += len(text)
                self._output(
                    self.host, text if self._kept <= MOST_OUTPUT else "[what it says from here on is not kept]"
                )

    @property
    def pid(self) -> int | None:
        """The process id of the command itself, once started."""
        return None if self._process is None else self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        return None if self._process is None else self._process.returncode

    def failure(self) -> str | None:
        """How it failed, in words; None if it runs, has ended well, or is being ended.

        What it said last may come a moment after it has ended.
        """
        if self.ending or not self.status:
            return None
        self._ended_at = self._ended_at or time.monotonic()
        if not all(reader.done() for reader in self._readers) and time.monotonic() - self._ended_at < GRACE_S:
            return None
        said = f": {self._last}" if self._last else ", it wrote nothing to standard error"
        return f"the command on host {self.host} {ended_how(self.status)}{said}"

    async def end(self) -> None:
        """End it and everything that it has started."""
        self.ending = True
        if self._process is None:
            return
        if self._process.returncode is None:
            started = descendants(self._process.pid, parents())
            _signal(started, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), GRACE_S)
            _signal(dict.fromkeys([*started, *descendants(self._process.pid, parents())]), signal.SIGKILL)
            await self._process.wait()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _adopt_orphans() -> None:
    """Let what the command leaves behind stay below it, so that it is found."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
