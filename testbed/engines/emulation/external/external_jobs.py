"""Jobs of kind ``external``: real programs on the emulated hosts, their connections scheduled as those of other jobs.

Switches drop what no rule names, so a program's request to open a connection is dropped until the controller knows of
it: it is found in the lists of the kernel, its ends get the window and the mark of every other flow, and the controller
decides. The kernel repeats the request after a second, and finds the rules.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from controller.decision import Decision
from testbed.engines.emulation.external.commands import Command, user_of_commands
from testbed.engines.emulation.external.output import OUTPUT
from testbed.engines.emulation.external.program import POLL_S, SETTLED_POLL_S, SETTLED_S, Program
from testbed.engines.emulation.external.reports import HostReports
from testbed.engines.emulation.external.settings import environment_of_host, host_settings, variables_of
from testbed.engines.emulation.external.sock_diag import SocketTable
from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from topologies.mininet_adapter.hosts import (
    GATEWAY,
)
from topologies.mininet_adapter.network import EmulatedNetwork
from topologies.mininet_adapter.system import network_namespace_of, run_batch
from workloads.external import filled
from workloads.iteration.protocol import IterationEnded
from workloads.job import Job

OnIteration = Callable[[str, IterationEnded], None]
Reconnect = Callable[[Job], Awaitable[None]]


class ExternalJobs:
    """Starts and ends the commands of external jobs, and keeps their flows up to date.

    ``on_iteration(host, iteration)`` gets what programs report; ``reconnect(job)`` has the controller decide on the job
    with the connections that it has now; ``tell`` gets what commands say.
    """

    def __init__(
        self,
        experiment: Experiment,
        network: EmulatedNetwork,
        folder: Path,
        tell: Callable[..., None],
        on_iteration: OnIteration,
        reconnect: Reconnect,
    ) -> None:
        self._experiment, self._network, self._folder = experiment, network, folder
        self._tell, self._on_iteration, self._reconnect = tell, on_iteration, reconnect
        self._programs: dict[str, Program] = {}
        self._watch: asyncio.Task[None] | None = None
        self._starting: set[asyncio.Task[None]] = set()
        self._problem: str | None = None

    @property
    def programs(self) -> tuple[Program, ...]:
        """All that have been opened."""
        return tuple(self._programs.values())

    async def open(self, job: Job) -> None:
        """Start the command of ``job`` on its hosts; ``RunFailedError`` if that cannot be done."""
        assert job.external is not None
        user = user_of_commands()
        folder = self._folder / job.name
        folder.mkdir(parents=True)
        program = self._programs[job.name] = Program(job, self._experiment)
        values = variables_of(job, self._experiment)
        for setting in host_settings(job, self._experiment.fabric):
            host, pid = setting.host, self._network.host_pid(setting.host)
            with network_namespace_of(pid):
                self._let_choose_sources(setting.interface, setting.address)
                program.tables[host] = SocketTable()
            reports = program.reports[host] = HostReports(
                job.name,
                job.external.processes,
                setting.gpus,
                job.external.compute_s,
                lambda event, host=host: self._iteration(program, host, event),  # type: ignore[misc]
                self._fail,
            )
            socket = folder / f"{host}.sock"
            await reports.listen(socket)
            if user is not None:
                for path in (folder, socket):
                    os.chown(path, user.uid, user.gid)
            command = program.commands[host] = Command(host, lambda host, text: self._say(job.name, host, text))
            words = [filled(word, values[host]) for word in job.external.command]
            own = {name: filled(text, values[host]) for name, text in job.external.environment.items()}
            environment = {**environment_of_host(values[host], folder, socket), **own}
            await command.start(pid, user, words, environment, os.getcwd())
        if self._watch is None:
            self._watch = asyncio.create_task(self._watch_connections())

    def _let_choose_sources(self, interface: str, address: str) -> None:
        """A program that connects without binding leaves by the first port of its GPUs."""
        again = f"rto_min {round(1000 * self._network.retransmission_s)}ms"
        run_batch("ip", [f"route replace default via {GATEWAY} dev {interface} onlink src {address} {again}"])

    def _say(self, job: str, host: str, text: str) -> None:
        self._tell(OUTPUT, job=job, host=host, text=text)

    def _fail(self, why: str) -> None:
        self._problem = self._problem or why

    def _iteration(self, program: Program, host: str, event: IterationEnded) -> None:
        if not program.halted:
            self._on_iteration(host, event)
            program.iteration_ended(host, event.iteration)

    async def ready(self, name: str) -> None:
        """Return when every process of job ``name`` is about to begin its first iteration.

        ``RunFailedError`` if one fails, or it takes longer than the job allows.
        """
        program = self._programs[name]
        assert program.job.external is not None
        limit = program.job.external.start_limit_s
        until = time.monotonic() + limit
        while waiting := [host for host, reports in program.reports.items() if not reports.all_ready.is_set()]:
            if (why := self.ended()) is not None:
                raise RunFailedError(why)
            if program.progress == "traffic" and program.connections:
                return
            if time.monotonic() > until:
                what = "begin an iteration (testbed.client)" if program.progress == "client" else "open a connection"
                raise RunFailedError(
                    f"job {name}: the program on host {waiting[0]} did not {what} within {limit:g} s: "
                    f"see {name}.{waiting[0]}.log, or raise start_limit"
                )
            await asyncio.sleep(POLL_S)

    def start(self, name: str, at: float) -> None:
        """Let the processes of job ``name`` begin ``at`` this time of the monotonic clock."""
        task = asyncio.create_task(self._start(self._programs[name], at))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start(self, program: Program, at: float) -> None:
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        program.begin(time.monotonic())
        for reports in program.reports.values():
            reports.go()

    async def _watch_connections(self) -> None:
        """Look for connections that were opened or closed, until cancelled; what goes wrong ends the run."""
        changed = time.monotonic()
        try:
            while True:
                await asyncio.sleep(self._pause_s(time.monotonic() - changed))
                for program in self.programs:
                    if not program.halted and program.look(time.monotonic()):
                        await self._tell_connections(program)
                        changed = time.monotonic()
                    for host, event in program.iterations_seen(time.monotonic()):
                        self._iteration(program, host, event)
        except (OSError, RunFailedError) as error:
            self._fail(f"connections of a job of kind external: {error}")

    async def _tell_connections(self, program: Program) -> None:
        """Let the controller decide on what a program has now; one that is ended meanwhile is not missed."""
        try:
            await self._reconnect(program.current())
        except RunFailedError:
            if not program.halted:
                raise

    def _pause_s(self, settled_s: float) -> float:
        """Until the next look: short where a program may open connections, or its bytes tell its iterations."""
        timed = any(program.progress == "traffic" for program in self.programs)
        return POLL_S if timed or settled_s < SETTLED_S else SETTLED_POLL_S

    def apply(self, decision: Decision) -> None:
        """Mark and pace the connections of all programs as ``decision`` says."""
        for program in self.programs:
            program.apply(decision)

    def ended(self) -> str | None:
        """What has failed, in words; None as long as nothing has."""
        if self._watch is not None and self._watch.done() and not self._watch.cancelled():
            self._watch.result()
        if self._problem is not None:
            return self._problem
        return next((why for program in self.programs if (why := program.failure()) is not None), None)

    async def halt(self, name: str) -> None:
        """End the command of job ``name`` on all hosts."""
        await self._programs[name].end()

    async def close(self, name: str) -> int:
        """Forget job ``name``, whose command ends with that; return how many segments were sent again for it."""
        await self.halt(name)
        return self._programs[name].close()

    async def stop(self) -> None:
        """End everything."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        with contextlib.suppress(OSError):
            await asyncio.gather(*(program.end() for program in self.programs))

    def rows(self) -> dict[str, Any]:
        """Job -> what was found of it, for the run's directory."""
        return {program.job.name: program.row() for program in self.programs}
