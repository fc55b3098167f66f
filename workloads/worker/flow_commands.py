"""Commands that change running flows: hold and resume, marks, rates, shifts, another source port."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from workloads.iteration.hold import Hold
from workloads.iteration.pcie_semaphore import PcieSemaphore
from workloads.iteration.protocol import (
    AssignPcieTurns,
    ExpectFlows,
    Expecting,
    Held,
    HoldFlows,
    MarkByBytes,
    Reconnected,
    ReconnectFlows,
    ResumeFlows,
    Shaped,
    ShapeFlows,
    ShiftJob,
    Tell,
)
from workloads.iteration.time_shift import PhaseKeeper
from workloads.worker.connections import Connections
from workloads.worker.event_loop import Loop
from workloads.worker.hosted_job import HostedJob
from workloads.worker.socket_options import pace, unacknowledged
from workloads.worker.tcp_endpoints import TcpSender

V = TypeVar("V")

FlowCommand = (
    HoldFlows | ResumeFlows | ExpectFlows | ReconnectFlows | ShapeFlows | MarkByBytes | AssignPcieTurns | ShiftJob
)

_DRAIN_POLL_S: Final = 0.002


def _reason(command: HoldFlows | ResumeFlows) -> Hold:
    return Hold.CUT_OFF if command.cut_off else Hold.PATH_CHANGE


class FlowChanges:
    """Carries the commands out on the ``jobs`` and ``flows`` (flow -> job) of a worker.

    A job may end while it is being changed: commands for a flow that is no longer open are ignored.
    """

    def __init__(
        self,
        loop: Loop,
        tell: Tell,
        jobs: dict[str, HostedJob],
        flows: dict[str, HostedJob],
        connections: Connections,
        pcie: PcieSemaphore[TcpSender],
    ) -> None:
        self._loop = loop
        self._tell = tell
        self._jobs = jobs
        self._flows = flows
        self._connections = connections
        self._pcie = pcie

    def carry_out(self, command: FlowCommand) -> None:
        """Do what ``command`` says."""
        match command:
            case HoldFlows():
                self._hold(command.flows, _reason(command))
            case ResumeFlows():
                self._resume(command.flows, _reason(command))
            case ExpectFlows():
                self._expect(command)
            case ReconnectFlows():
                self._reconnect(command)
            case ShapeFlows():
                self._shape(command)
            case MarkByBytes():
                for flow, job, byte_marks in self._open(command.flows):
                    if flow in job.program.out:
                        job.program.out[flow].marks = byte_marks
            case AssignPcieTurns():
                self._pcie.assign(command.flows)
            case ShiftJob():
                self._shift(command)

    def _open(self, flows: Mapping[str, V]) -> list[tuple[str, HostedJob, V]]:
        return [(flow, self._flows[flow], value) for flow, value in flows.items() if flow in self._flows]

    def _hold(self, flows: Iterable[str], why: Hold) -> None:
        for flow in flows:
            if flow not in self._flows:
                self._tell(Held(flow))
                continue
            stream = self._flows[flow].program.out[flow]
            stream.held |= why
            self._pcie.changed(flow)
            self._drain(stream)

    def _drain(self, stream: TcpSender) -> None:
        if stream.flow in self._flows and unacknowledged(stream.connection):
            self._loop.at(self._loop.clock() + _DRAIN_POLL_S, lambda _late: self._drain(stream))
        else:
            self._tell(Held(stream.flow))

    def _resume(self, flows: Iterable[str], why: Hold) -> None:
        for flow, job, _ in self._open(dict.fromkeys(flows)):
            job.program.out[flow].held &= ~why
            self._pcie.changed(flow)
            job.program.resume(job.program.out[flow])

    def _expect(self, command: ExpectFlows) -> None:
        for flow, job, address in self._open(command.flows):
            job.expected[address] = flow
            job.replacing.add(flow)
        for flow in command.flows:
            self._tell(Expecting(flow))

    def _reconnect(self, command: ReconnectFlows) -> None:
        for flow, port in command.flows.items():
            if flow in self._flows:
                self._connections.reconnect(self._flows[flow], flow, port)
            else:
                self._tell(Reconnected(flow))

    def _shape(self, command: ShapeFlows) -> None:
        for name, tos in command.job_tos.items():
            job = self._jobs.get(name)
            if job is not None:
                for flow in job.program.out:
                    self._mark(job, flow, tos)
        for flow, job, tos in self._open(command.flow_tos):
            self._mark(job, flow, tos)
        for flow, job, rate in self._open(command.rates):
            self._set_rate(job, job.program.out[flow], rate)
        self._tell(Shaped(command.caused_at, self._loop.clock()))

    @staticmethod
    def _mark(job: HostedJob, flow: str, tos: int) -> None:
        stream = job.program.out.get(flow)  # acknowledgements of those that end here have a mark of their own
        if stream is not None and stream.marks is None:
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

    def _shift(self, command: ShiftJob) -> None:
        job = self._jobs.get(command.job)
        if job is not None:
            job.program.phase_keeper = PhaseKeeper(command.time_shift) if command.time_shift else None
