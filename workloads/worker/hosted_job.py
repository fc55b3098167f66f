"""A job on this host: its plan, its program, its sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from workloads.iteration.job_plan import Address, JobPlan, PlannedConnection
from workloads.iteration.program import JobProgram
from workloads.worker.socket_options import waits_at_its_link
from workloads.worker.tcp_endpoints import TcpReceiver, TcpSender


class HostedJob:
    """A job on this host with its sockets. ``expected``: addresses of an incoming connection -> its flow."""

    def __init__(self, plan: JobPlan, program: JobProgram[TcpSender, TcpReceiver]) -> None:
        self.plan = plan
        self.name = plan.name
        self.program = program
        self.listeners: list[socket.socket] = []
        self.expected: dict[Address, str] = {planned.address: planned.flow for planned in plan.incoming}
        self.outgoing: dict[str, PlannedConnection] = {planned.flow: planned for planned in plan.outgoing}
        self.senders: dict[str, str] = {planned.flow: planned.peer for planned in plan.incoming}
        self.connecting: set[str] = set(self.outgoing)
        self.replacing: set[str] = set()
        self.incoming = len(self.expected)

    def complete(self) -> bool:
        """Whether every connection, out and in, is open."""
        return not self.connecting and len(self.program.into) == self.incoming

    def stream(self, flow: str) -> TcpSender | TcpReceiver:
        """The end of ``flow`` that is here."""
        return self.program.out[flow] if flow in self.program.out else self.program.into[flow]

    def first_tos(self, flow: str) -> int:
        """The mark that ``flow`` begins with."""
        return self.plan.tos.get(flow, 0)

    def message_sizes(self, flow: str) -> list[int]:
        """Bytes of the messages that come in on ``flow``, in order, until they are the same again."""
        own = [(phase, message.size) for phase in self.plan.phases for message in phase.into if message.flow == flow]
        return [phase.size_in(iteration, size) for iteration in self._iterations() for phase, size in own]

    def forwarded_sizes(self, flow: str) -> list[int]:
        """How many of the first bytes of each of these messages other messages of their phase wait for."""
        if all(sent.after != flow for phase in self.plan.phases for sent in phase.out):
            return [0]
        own = [phase for phase in self.plan.phases for message in phase.into if message.flow == flow]
        return [
            max((sent.size - sent.lead for sent in phase.in_iteration(iteration).out if sent.after == flow), default=0)
            for iteration in self._iterations()
            for phase in own
        ]

    def _iterations(self) -> range:
        """The first one, or all where requests make them differ."""
        requests = max((len(phase.requests) for phase in self.plan.phases), default=0)
        return range(self.plan.first_iteration if requests else 0, max(requests, 1))


def link_is_busy(job: HostedJob, flow: str, jobs: Iterable[HostedJob]) -> bool:
    """Whether packets of other flows of ``jobs``, all on this host, wait at the link by which ``flow`` leaves."""
    source = job.outgoing[flow].source
    return any(
        stream.started and not stream.done and waits_at_its_link(stream.connection)
        for other in jobs
        for stream in other.program.out.values()
        if stream.flow != flow and other.outgoing[stream.flow].source == source
    )
