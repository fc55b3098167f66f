"""The workers of a run: processes that serve one host each, or several, in the hosts' namespaces."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from testbed.engines.emulation.namespaces.liveness import ended_how
from testbed.errors import RunFailedError
from testbed.machine.child_python import child_environment, python_module
from testbed.machine.privileges import User, plain_user, unprivileged
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
from workloads.opener.requests import pair

_LINE_LIMIT = 1 << 24
_ANSWER_S = 60.0
_FIRST = -20  # the best niceness

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

    def __init__(self, on_event: Callable[[str, Event], None], folder: Path) -> None:
        """In ``folder``, which is the run's own, workers notify each other of messages that have arrived."""
        self._folder = folder
        self._on_event = on_event
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._names: dict[str, str] = {}
        self._opener: asyncio.subprocess.Process | None = None
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
        return all(os.getpriority(os.PRIO_PROCESS, pid) == _FIRST for pid in self.watched.values())

    async def start(self, namespaces: Mapping[str, int]) -> None:
        """Start the workers of hosts, in the namespaces of processes (host -> pid), and wait until all are ready.

        They have no privileges: a process beside them opens their sockets in the namespaces, and this one gives them
        their priority.
        """
        user = plain_user()
        self._folder.mkdir(parents=True)
        if user is not None:
            os.chown(self._folder, user.uid, user.gid)
        places = {host: place for place, host in enumerate(namespaces)}
        groups = divide(tuple(namespaces))
        ends = [pair() for _ in groups]
        await self._start_opener([theirs for _, theirs in ends], list(namespaces.values()))
        await asyncio.gather(
            *(
                self._spawn(user, mine, {host: places[host] for host in hosts})
                for hosts, (mine, _) in zip(groups, ends, strict=True)
            )
        )
        await self.expect(Ready, "", namespaces)
        for process in {self._opener, *self._processes.values()}:
            assert process is not None
            serve_first(process.pid)

    async def _start_opener(self, connections: Sequence[socket.socket], pids: Sequence[int]) -> None:
        """Start the process that opens sockets in the namespaces of ``pids`` for those who ask on ``connections``."""
        with contextlib.ExitStack() as opened:
            namespaces = [opened.enter_context(open(f"/proc/{pid}/ns/net")).fileno() for pid in pids]
            asking = [opened.enter_context(connection).fileno() for connection in connections]
            arguments = [",".join(map(str, descriptors)) for descriptors in (asking, namespaces)]
            self._opener = await asyncio.create_subprocess_exec(
                *unprivileged(python_module("workloads.opener", *arguments, site=False), None, keep=["sys_admin"]),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                env=_environment(),
                pass_fds=[*asking, *namespaces],
            )

    async def _spawn(self, user: User | None, opener: socket.socket, places: Mapping[str, int]) -> None:
        """Start the worker of the hosts in ``places`` (host -> number of its namespace at the ``opener``)."""
        arguments = [str(self._folder), f"--opener={opener.fileno()}", *(f"{host}={n}" for host, n in places.items())]
        with opener:
            process = await asyncio.create_subprocess_exec(
                *unprivileged(python_module("workloads.worker", *arguments, site=False), user),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=_environment(),
                limit=_LINE_LIMIT,
                pass_fds=[opener.fileno()],
            )
        hosts = tuple(places)
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
        processes = {process for process in (self._opener, *self._processes.values()) if process is not None}
        for process in processes:
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*(process.wait() for process in processes))
        await asyncio.gather(*self._readers)


def _environment() -> dict[str, str]:
    """What workers need of the environment: above all, no other places to import from."""
    return child_environment("")


def serve_first(pid: int) -> None:
    """Have the kernel serve a process before ordinary ones, where it may: a late worker is a slow GPU.

    Not as a real-time process: one that sends all the time would keep another, whose pause has ended, waiting for a
    whole time slice of 100 ms. Nor on a CPU of its own: in a burst the packets of all links may end up on one CPU,
    and workers that may leave it send from the other.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _FIRST)


def _subject(answer: Answer) -> str:
    """The job or flow that ``answer`` is about; empty for the worker itself."""
    match answer:
        case JobAnswer():
            return answer.job
        case FlowAnswer():
            return answer.flow
    return ""
