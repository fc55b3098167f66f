"""One real program while it runs: its commands, the connections that they have, and what these carry."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from socket import socket
from typing import Any, Final

from controller.decision import Decision
from testbed.engines.common.worker_plan import tos_of_flows, window_packets
from testbed.engines.emulation.external.commands import Command
from testbed.engines.emulation.external.connections import (
    Ends,
    declared_per_port,
    ends_of,
    flow_id,
    opposite,
    ports_of,
    with_connections,
)
from testbed.engines.emulation.external.foreign_sockets import borrowed, set_mark, set_rate, set_window
from testbed.engines.emulation.external.processes import Holder, descendants, parents, sockets_of
from testbed.engines.emulation.external.reports import HostReports, Reported, iteration_of
from testbed.engines.emulation.external.sock_diag import LISTEN, OPENING, SocketTable, TcpSocket
from testbed.engines.emulation.external.traffic import TrafficIterations
from testbed.experiment.experiment import Experiment
from topologies.shaping import segment_size, tos_of_level
from workloads.external import Progress
from workloads.iteration.protocol import IterationEnded
from workloads.job import Job

POLL_S: Final = 0.02
"""Between two looks at a program's sockets."""
SETTLED_S: Final = 5.0
"""After so long without a new connection, looks become as rare as :data:`SETTLED_POLL_S`."""
SETTLED_POLL_S: Final = 0.1
MISSED: Final = 5
"""After so many looks a socket is one of another job's: a process may just have started when it was looked for."""
GONE_S: Final = 2.0
"""A connection that no host lists for so long has been closed, its last packets have arrived."""
MEASURED_FROM: Final = 1
MEASURED_OVER: Final = 3
"""Iterations over which the bytes of connections are counted, the first one left out."""


class Program:
    """The external ``job`` and all that belongs to it, by host."""

    def __init__(self, job: Job, experiment: Experiment) -> None:
        self.job = job
        self._experiment = experiment
        self._ports = ports_of(job, experiment.fabric)
        self._window = window_packets(experiment) * segment_size(experiment.scale.mtu)
        self._declared = declared_per_port(job)
        self._decision = Decision()
        self.tables: dict[str, SocketTable] = {}
        self.reports: dict[str, HostReports] = {}
        self.commands: dict[str, Command] = {}
        self.connections: dict[Ends, float] = {}
        self._missed: Counter[Ends] = Counter()
        self._holders: dict[Ends, Holder] = {}
        self._listeners: dict[int, Holder] = {}
        self._set: dict[Ends, tuple[Holder, int, float | None]] = {}
        self._acknowledged: dict[Ends, int] = {}
        self._carried_before = 0
        self._again: dict[Ends, tuple[int, int]] = {}
        self._counted: dict[int, dict[Ends, int]] = {}
        self._iterations: dict[str, int] = {}
        self._sizes: dict[Ends, float] = {}
        self._measured = False
        self._traffic: TrafficIterations | None = None
        self._seen = 0
        self.halted = False

    @property
    def progress(self) -> Progress:
        """How its iterations are found."""
        assert self.job.external is not None
        return self.job.external.progress

    def current(self) -> Job:
        """The job with the connections that it has now."""
        return with_connections(self.job, self.connections, self._sizes, self._declared)

    # What it has opened

    def look(self, now: float) -> bool:
        """Read the sockets of all hosts; return whether the controller should know of something new."""
        read = {host: table.read() for host, table in self.tables.items()}
        sockets = {ends: found for ends, found in self._joined(read)}
        new = {e for e in sockets if e not in self.connections and self._missed[e] < MISSED}
        # What nobody has accepted yet has no holder.
        listed = {ends for ends in self.connections if ends in sockets and sockets[ends].inode}
        unheld = listed - self._holders.keys()
        if new or unheld:
            self._find_holders(read, sockets, new)
        opened = {ends for ends in new if ends in self._holders or opposite(ends) in self._holders}
        self._missed.update(ends for ends in new - opened if sockets[ends].inode)
        for ends in opened:
            self.connections[ends] = self.connections[opposite(ends)] = now
        self._count(sockets)
        if opened or unheld & self._holders.keys():
            self.apply(self._decision)
        self._keep_windows(sockets)
        return self._forget_gone(sockets, now) or bool(opened) or self._take_sizes()

    def _joined(self, read: dict[str, list[TcpSocket]]) -> Iterator[tuple[Ends, TcpSocket]]:
        for found in (each for sockets in read.values() for each in sockets):
            ends = ends_of(found, self._ports)
            if ends is not None:
                yield ends, found

    def _find_holders(self, read: dict[str, list[TcpSocket]], sockets: dict[Ends, TcpSocket], new: set[Ends]) -> None:
        """Note who holds sockets, and prepare those that are new, with the sockets that listen for them."""
        parent_of = parents()
        pids = [pid for each in self.commands.values() if each.pid for pid in descendants(each.pid, parent_of)]
        held = sockets_of(pids)
        for ends, found in sockets.items():
            if found.inode in held and (ends in new or ends in self.connections) and ends not in self._holders:
                self._holders[ends] = held[found.inode]
                self._change(held[found.inode], lambda each: set_window(each, self._window))
        for found in (each for listed in read.values() for each in listed):
            if found.state == LISTEN and found.inode in held and found.inode not in self._listeners:
                self._listeners[found.inode] = held[found.inode]
                self._mark_listener(held[found.inode])

    def _keep_windows(self, sockets: dict[Ends, TcpSocket]) -> None:
        """Set a window again where the kernel has forgotten it, as it does once it knows how large packets are."""
        most = self._window + segment_size(self._experiment.scale.mtu)  # the kernel rounds up
        for ends, holder in self._holders.items():
            if ends in sockets and sockets[ends].window > most:
                self._change(holder, lambda each: set_window(each, self._window))

    def _mark_listener(self, holder: Holder) -> None:
        """What it accepts has the window and the mark of the job until the connection has its own."""
        levels = self._experiment.levels
        tos = tos_of_level(self._decision.levels.get(self.job.name, levels - 1), levels)

        def change(connection: socket) -> None:
            set_window(connection, self._window)
            set_mark(connection, tos)

        self._change(holder, change)

    def _change(self, holder: Holder, change: Callable[[socket], None]) -> None:
        with contextlib.suppress(OSError), borrowed(holder) as connection:  # it may have been closed meanwhile
            change(connection)

    def _count(self, sockets: dict[Ends, TcpSocket]) -> None:
        for ends, found in sockets.items():
            if ends in self.connections:
                self._acknowledged[ends] = found.acknowledged
                # Requests to open that were repeated are not losses: nothing had been announced yet.
                if found.state not in OPENING:
                    first, _ = self._again.get(ends, (found.retransmits, 0))
                    self._again[ends] = first, found.retransmits

    def _forget_gone(self, sockets: dict[Ends, TcpSocket], now: float) -> bool:
        for ends in self.connections:
            if ends in sockets or opposite(ends) in sockets:
                self.connections[ends] = now
        gone = [ends for ends, seen in self.connections.items() if now - seen > GONE_S]
        for ends in gone:
            del self.connections[ends]
            self._holders.pop(ends, None)
            self._set.pop(ends, None)
        return bool(gone)

    # What it sends

    def iteration_ended(self, host: str, iteration: int) -> None:
        """Count what its connections have carried when all hosts have ended an iteration."""
        self._iterations[host] = iteration + 1
        done = min(self._iterations.values()) if len(self._iterations) == len(self.commands) else 0
        if MEASURED_FROM <= done <= MEASURED_FROM + MEASURED_OVER:
            self._counted.setdefault(done, dict(self._acknowledged))

    def begin(self, now: float) -> None:
        """Its first iteration begins."""
        if self.progress == "traffic":
            self._carried_before = sum(self._acknowledged.values())
            self._traffic = TrafficIterations(now)

    def iterations_seen(self, now: float) -> Iterator[tuple[str, IterationEnded]]:
        """(host, iteration) for all that have ended in the traffic since the last call; all hosts alike."""
        if self._traffic is None or self.halted:
            return
        assert self.job.external is not None
        hosts = self._experiment.fabric.host_of_gpu
        for seen in self._traffic.take(now, sum(self._acknowledged.values()) - self._carried_before):
            parts = [Reported(seen.start, seen.end, ((seen.ready, seen.end),))]
            for host in self.commands:
                gpus = sum(hosts[gpu] == host for gpu in self.job.gpus)
                yield host, iteration_of(self.job.name, self._seen, parts, gpus, self.job.external.compute_s)
            self._seen += 1

    def _take_sizes(self) -> bool:
        """Measure the bytes per iteration, once; return whether that was now."""
        last = MEASURED_FROM + MEASURED_OVER
        if self._measured or last not in self._counted or MEASURED_FROM not in self._counted:
            return False
        first = self._counted[MEASURED_FROM]
        unscale = self._experiment.scale.unscale_size
        self._sizes = {
            ends: unscale((count - first.get(ends, 0)) / MEASURED_OVER) for ends, count in self._counted[last].items()
        }
        self._measured = True
        return True

    # What is decided

    def apply(self, decision: Decision) -> None:
        """Mark and pace its connections as ``decision`` says; their windows are set when they are found."""
        self._decision = decision
        if self.halted:
            return
        for holder in self._listeners.values():
            self._mark_listener(holder)
        flows = {flow.id: flow for flow in self.current().flows}
        tos = tos_of_flows(decision, tuple(flows.values()), self._experiment.levels)
        for ends, holder in list(self._holders.items()):
            name = flow_id(self.job.name, ends)
            if name not in flows:
                continue
            rate = decision.rates.get(name)
            paced = None if rate is None else self._experiment.scale.rate(rate) / 8
            wanted = holder, tos[name], paced
            if self._set.get(ends) == wanted:
                continue

            def change(connection: socket, mark: int = tos[name], paced: float | None = paced) -> None:
                set_mark(connection, mark)
                set_rate(connection, paced)

            self._change(holder, change)
            self._set[ends] = wanted

    # How it ends

    def failure(self) -> str | None:
        """What has failed, in words: a command, or all of them have ended although iterations are missing."""
        if self.halted:
            return None
        for command in self.commands.values():
            if (why := command.failure()) is not None:
                return f"job {self.job.name}: {why}"
        measure = self._experiment.measure
        wanted = min(measure.warmup + measure.iterations, self.job.iterations)
        made = min(self._iterations.values()) if len(self._iterations) == len(self.commands) else 0
        if self.commands and made < wanted and all(command.status == 0 for command in self.commands.values()):
            return (
                f"job {self.job.name}: its command ended after {made} iterations, {wanted} were asked for "
                "(measure.warmup and measure.iterations): let it go on until it is ended"
            )
        return None

    async def end(self) -> None:
        """End its commands; what they report or open from now on does not count."""
        self.halted = True
        await asyncio.gather(*(command.end() for command in self.commands.values()))
        for reports in self.reports.values():
            await reports.close()

    def close(self) -> int:
        """Read no more sockets; return how many segments were sent again on connections that were open."""
        for table in self.tables.values():
            table.close()
        return sum(last - first for first, last in self._again.values())

    def row(self) -> dict[str, Any]:
        """What was found of it: connections with the bytes that they have carried, as run."""
        return {
            "connections": {flow_id(self.job.name, ends): sent for ends, sent in sorted(self._acknowledged.items())},
            "sent_again": {flow_id(self.job.name, e): b - a for e, (a, b) in sorted(self._again.items()) if b > a},
            "bytes_per_iteration": {flow_id(self.job.name, e): size for e, size in sorted(self._sizes.items())},
        }
