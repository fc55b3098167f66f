"""The workers of a run: processes that serve one host each, or several, in the hosts' namespaces."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from testbed.engines.emulation.liveness import ended_how
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

MOST_PROCESSES: Final = 16
"""Up to so many hosts have a process each, so that no host's timers wait for another host's bytes. More processes than
that would cost more than they gain: each takes 60 ms of CPU to start and 18 MB, a few are enough to keep every core
busy, and one that serves several hosts finds the bytes of several at each wake-up."""


def divide(hosts: Sequence[str], most: int = MOST_PROCESSES) -> list[tuple[str, ...]]:
    """Divide ``hosts`` among at most ``most`` processes; none has two more than another.

    Neighbours go to different processes: hosts of one job are beside each other, and burst at the same time. So
    the work of each job is spread over the processes, and these over the cores, whichever jobs burst.
    """
    processes = min(most, len(hosts))
    return [tuple(hosts[first::processes]) for first in range(processes)]


def worker_name(hosts: Sequence[str]) -> str:
    """What findings call the process that serves ``hosts``: a watched process is known by this name alone."""
    return f"the worker of host{'s' if len(hosts) > 1 else ''} {', '.join(hosts)}"


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
        self._names: dict[str, str] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._arrived: dict[tuple[type[Answer], str], set[str]] = defaultdict(set)
        self._changed = asyncio.Condition()
        self._failure: str | None = None
        self._rank = 0
        self._stopping = False

    @property
    def pids(self) -> dict[str, int]:
        """Host -> process id of its worker, which may serve other hosts too."""
        return {host: process.pid for host, process in self._processes.items()}

    @property
    def watched(self) -> dict[str, int]:
        """Name of each worker process -> its process id."""
        return {self._names[host]: process.pid for host, process in self._processes.items()}

    def name(self, host: str) -> str:
        """What findings call the worker of ``host``."""
        return self._names[host]

    @property
    def served_first(self) -> bool:
        """Whether the kernel serves every worker before ordinary processes."""
        return all(os.sched_getscheduler(pid) == os.SCHED_RR for pid in self.watched.values())

    async def start(self, namespaces: Mapping[str, int]) -> None:
        """Start the workers of hosts, in the namespaces of processes (host -> pid), and wait until all are ready."""
        self._folder.mkdir(parents=True)
        await asyncio.gather(*(self._spawn(hosts, namespaces) for hosts in divide(tuple(namespaces))))
        await self.expect(Ready, "", namespaces)

    def take_turns(self, cpus: Iterable[int]) -> None:
        """Keep each process to one of ``cpus``, in turn.

        Where the kernel forwards, a packet stays on the CPU that sent it until it has arrived: forwarding takes turns
        with the CPUs as well, and processes that change the CPU all the time cost more than an even load gains.
        """
        order = sorted(cpus)
        for number, pid in enumerate(dict.fromkeys(self.pids.values())):
            os.sched_setaffinity(pid, {order[number % len(order)]})

    async def _spawn(self, hosts: Sequence[str], namespaces: Mapping[str, int]) -> None:
        root = str(PACKAGES)
        environment = dict(os.environ, PYTHONPATH=root)
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-S",
                "-m",
                "workloads.worker",
                str(self._folder),
                *(f"{host}={namespaces[host]}" for host in hosts),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=environment,
                limit=_LINE_LIMIT,
            )
        name = worker_name(hosts)
        self._processes.update(dict.fromkeys(hosts, process))
        self._names.update(dict.fromkeys(hosts, name))
        self._readers.append(asyncio.create_task(self._read(name, process)))

    async def _read(self, name: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            try:
                host, event = decode_event(line)
            except ValueError as error:
                await self._fail(f"what {name} said is not understood: {error}")
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
            status = await process.wait()
            await self._fail(f"{name} {ended_how(status)}", 3 if status < 0 else 2)

    async def _fail(self, why: str, rank: int = 1) -> None:
        """A worker that was ended weighs more than one that ended by itself, and that more than a flow that broke.

        Each follows from the one before, and may be told first.
        """
        async with self._changed:
            if rank > self._rank:
                self._failure, self._rank = why, rank
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
        process.stdin.write(encode_command(host, command))

    async def stop(self) -> None:
        """End all workers."""
        self._stopping = True
        processes = set(self._processes.values())
        for process in processes:
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*(process.wait() for process in processes))
        await asyncio.gather(*self._readers)


def _subject(answer: Answer) -> str:
    """The job or flow that ``answer`` is about; empty for the worker itself."""
    match answer:
        case JobAnswer():
            return answer.job
        case FlowAnswer():
            return answer.flow
    return ""
