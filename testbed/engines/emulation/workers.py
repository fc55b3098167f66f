"""The workers of a run, one process per host, inside that host's namespace."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from testbed.engines.emulation.sandbox import PACKAGES
from testbed.errors import RunFailedError
from workloads.iteration.protocol import (
    Answer,
    Command,
    Event,
    Failed,
    FlowAnswer,
    JobAnswer,
    Ready,
    decode_event,
    encode_command,
    event_name,
)

_LINE_LIMIT = 1 << 24
_ANSWER_S = 60.0


class WorkerPool:
    """Sends commands to workers and routes their events.

    ``on_event(host, event)`` gets every event; :meth:`expect` waits for particular ones.
    """

    def __init__(self, on_event: Callable[[str, Event], None], log: Path, folder: Path) -> None:
        """In ``folder``, which is the run's own, workers notify each other of messages that have arrived."""
        self._folder = folder
        self._on_event = on_event
        self._log = log
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._arrived: dict[tuple[type[Answer], str], set[str]] = defaultdict(set)
        self._changed = asyncio.Condition()
        self._failure: str | None = None
        self._stopping = False

    @property
    def pids(self) -> dict[str, int]:
        """Host -> process id of its worker."""
        return {host: process.pid for host, process in self._processes.items()}

    @property
    def served_first(self) -> bool:
        """Whether the kernel serves every worker before ordinary processes."""
        return all(os.sched_getscheduler(pid) == os.SCHED_RR for pid in self.pids.values())

    async def start(self, namespaces: Mapping[str, int]) -> None:
        """Start a worker in the namespace of each (host -> pid) and wait until all are ready."""
        self._folder.mkdir(parents=True)
        await asyncio.gather(*(self._spawn(host, pid) for host, pid in namespaces.items()))
        await self.expect(Ready, "", namespaces)

    async def _spawn(self, host: str, pid: int) -> None:
        root = str(PACKAGES)
        environment = dict(os.environ, PYTHONPATH=root)
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                "nsenter",
                f"--net=/proc/{pid}/ns/net",
                sys.executable,
                "-S",
                "-m",
                "workloads.worker",
                str(self._folder),
                host,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=environment,
                limit=_LINE_LIMIT,
            )
        self._processes[host] = process
        self._readers.append(asyncio.create_task(self._read(host, process)))

    async def _read(self, host: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            try:
                event = decode_event(line)
            except ValueError as error:
                await self._fail(f"what the worker of host {host} said is not understood: {error}")
                continue
            if isinstance(event, Failed):
                await self._fail(f"flow {event.flow} of job {event.job}: {event.why}")
            elif isinstance(event, Answer):
                async with self._changed:
                    self._arrived[type(event), _subject(event)].add(host)
                    self._on_event(host, event)
                    self._changed.notify_all()
            else:
                self._on_event(host, event)
        if not self._stopping:
            await self._fail(f"the worker of host {host} ended with status {await process.wait()}")

    async def _fail(self, why: str) -> None:
        async with self._changed:
            self._failure = self._failure or why
            self._changed.notify_all()

    def check(self) -> None:
        """Raise ``RunFailedError`` if a worker has failed."""
        if self._failure is not None:
            raise RunFailedError(self._failure)

    async def expect(self, kind: type[Answer], subject: str, hosts: Iterable[str]) -> None:
        """Wait until every one of ``hosts`` has given the answer ``kind`` about ``subject`` (a job or flow)."""
        wanted = set(hosts)

        def settled() -> bool:
            return self._failure is not None or wanted <= self._arrived[kind, subject]

        try:
            async with self._changed:
                await asyncio.wait_for(self._changed.wait_for(settled), _ANSWER_S)
        except TimeoutError as error:
            missing, what = sorted(wanted - self._arrived[kind, subject]), event_name(kind)
            raise RunFailedError(f"host {missing[0]} did not report '{what}' for {subject or 'itself'}") from error
        self.check()
        self._arrived.pop((kind, subject), None)

    def tell(self, host: str, command: Command) -> None:
        """Send a command to the worker of ``host``."""
        process = self._processes[host]
        assert process.stdin is not None
        process.stdin.write(encode_command(command))

    async def stop(self) -> None:
        """End all workers."""
        self._stopping = True
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*(process.wait() for process in self._processes.values()))
        await asyncio.gather(*self._readers)


def _subject(answer: Answer) -> str:
    """The job or flow that ``answer`` is about; empty for the worker itself."""
    match answer:
        case JobAnswer():
            return answer.job
        case FlowAnswer():
            return answer.flow
    return ""
