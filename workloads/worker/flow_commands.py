"""Commands that change running flows: hold and resume, marks, rates, shifts, another source port."""

from __future__ import annotations

from typing import Any, Final

from workloads.iteration.from_plan import Tell, byte_marks
from workloads.iteration.hold import Hold
from workloads.iteration.pcie_semaphore import PcieSemaphore
from workloads.iteration.time_shift import TimeShift
from workloads.worker.connections import Connections
from workloads.worker.event_loop import Loop
from workloads.worker.hosted_job import HostedJob
from workloads.worker.socket_options import pace, unacknowledged
from workloads.worker.tcp_endpoints import TcpSender

_DRAIN_POLL_S: Final = 0.002


class FlowChanges:
    """Carries the commands out on the ``jobs`` and ``flows`` (flow -> job) of a worker.

    A job may end while it is being changed: what names a flow that is no longer open is left out.
    """

    def __init__(
        self,
        loop: Loop,
        tell: Tell,
        jobs: dict[str, HostedJob],
        flows: dict[str, HostedJob],
        connections: Connections,
        turns: PcieSemaphore[TcpSender],
    ) -> None:
        self._loop = loop
        self._tell = tell
        self._jobs = jobs
        self._flows = flows
        self._connections = connections
        self._pcie = turns

    def _open(self, flows: dict[str, Any]) -> list[tuple[str, HostedJob, Any]]:
        return [(flow, self._flows[flow], value) for flow, value in flows.items() if flow in self._flows]

    def hold(self, command: dict[str, Any]) -> None:
        """Send nothing more on some flows; tell of each when every byte of it is acknowledged."""
        for flow in command["flows"]:
            if flow not in self._flows:
                self._tell({"event": "held", "flow": flow})
                continue
            stream = self._flows[flow].program.out[flow]
            stream.held |= Hold.PATH_CHANGE
            self._pcie.changed(flow)
            self._drain(stream)

    def _drain(self, stream: TcpSender) -> None:
        if stream.flow in self._flows and unacknowledged(stream.connection):
            self._loop.at(self._loop.clock() + _DRAIN_POLL_S, lambda _late: self._drain(stream))
        else:
            self._tell({"event": "held", "flow": stream.flow})

    def resume(self, command: dict[str, Any]) -> None:
        """Go on with held flows."""
        for flow, job, _ in self._open(dict.fromkeys(command["flows"])):
            job.program.out[flow].held &= ~Hold.PATH_CHANGE
            self._pcie.changed(flow)
            job.program.resume(job.program.out[flow])

    def expect(self, command: dict[str, Any]) -> None:
        """Be ready for flows that will come from another source port."""
        for flow, job, address in self._open(command["flows"]):
            job.expected[tuple(address)] = flow
            job.replacing.add(flow)
        for flow in command["flows"]:
            self._tell({"event": "expecting", "flow": flow})

    def reconnect(self, command: dict[str, Any]) -> None:
        """Open held flows anew from another source port."""
        for flow, port in command["flows"].items():
            if flow in self._flows:
                self._connections.reconnect(self._flows[flow], flow, port)
            else:
                self._tell({"event": "reconnected", "flow": flow})

    def shape(self, command: dict[str, Any]) -> None:
        """Set marks of whole jobs and of flows, at both ends, and rates of flows."""
        for name, tos in command["tos"].items():
            job = self._jobs.get(name)
            if job is not None:
                for flow in (*job.program.out, *job.program.into):
                    self._mark(job, flow, tos)
        for flow, job, tos in self._open(command["flows"]):
            self._mark(job, flow, tos)
        for flow, job, rate in self._open(command["rates"]):
            self._set_rate(job, job.program.out[flow], rate)
        self._tell({"event": "shaped", "cause": command["cause"], "at": self._loop.clock()})

    @staticmethod
    def _mark(job: HostedJob, flow: str, tos: int) -> None:
        stream = job.stream(flow)
        if stream.marks is None:
            stream.mark(tos)

    def _set_rate(self, job: HostedJob, stream: TcpSender, rate: float | None) -> None:
        """Pace a flow; ``rate`` in bytes per second, 0 to hold it, None for no limit."""
        if rate == 0:
            stream.held |= Hold.ZERO_RATE
            self._pcie.changed(stream.flow)
            return
        pace(stream.connection, rate)
        stream.rate = rate
        if stream.held & Hold.ZERO_RATE:
            stream.held &= ~Hold.ZERO_RATE
            self._pcie.changed(stream.flow)
            job.program.resume(stream)

    def count(self, command: dict[str, Any]) -> None:
        """Set marks by bytes of the message."""
        for flow, job, given in self._open(command["flows"]):
            job.stream(flow).marks = byte_marks(given)

    def take_turns(self, command: dict[str, Any]) -> None:
        """Say which flows use which PCIe link by rank; flows that are not named wait for nobody."""
        self._pcie.assign({flow: (link, rank) for flow, (link, rank) in command["flows"].items()})

    def shift(self, command: dict[str, Any]) -> None:
        """Keep the iterations of a job at a phase of a period."""
        job = self._jobs.get(command["job"])
        if job is not None:
            job.program.time_shift = TimeShift(**command["rhythm"]) if command["rhythm"] else None
