"""What a worker does for one host: it carries out the commands of :mod:`workloads.iteration.protocol`."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable

from workloads.iteration.from_plan import program_of
from workloads.iteration.job_plan import JobPlan
from workloads.iteration.pcie_semaphore import PcieSemaphore
from workloads.iteration.program import JobProgram
from workloads.iteration.protocol import (
    Closed,
    CloseJob,
    ConnectJob,
    Failed,
    Halted,
    HaltJob,
    HostCommand,
    Listening,
    SetUpJob,
    StartJob,
    Tell,
)
from workloads.iteration.shared_gpus import SharedGpus
from workloads.worker.connections import Connections
from workloads.worker.event_loop import Loop
from workloads.worker.flow_commands import FlowChanges
from workloads.worker.hosted_job import HostedJob, link_is_busy
from workloads.worker.namespaces import Namespace
from workloads.worker.tcp_endpoints import TcpReceiver, TcpSender


class HostService:
    """The jobs, flows, GPUs and PCIe links of one host, served by ``loop``; ``tell`` takes the events on it.

    ``notify(host, flow)`` is to tell the worker of ``host`` that a message of ``flow`` has arrived here.
    """

    def __init__(self, loop: Loop, namespace: Namespace, tell: Tell, notify: Callable[[str, str], None]) -> None:
        self._loop = loop
        self._tell = tell
        self._notify = notify
        self._jobs: dict[str, HostedJob] = {}
        self._flows: dict[str, HostedJob] = {}
        self._connections = Connections(loop, namespace, tell, self._flows, self._receive)
        self._pcie: PcieSemaphore[TcpSender] = PcieSemaphore(self._go_on)
        self._gpus = SharedGpus()
        self._changes = FlowChanges(loop, tell, self._jobs, self._flows, self._connections, self._pcie)

    def carry_out(self, command: HostCommand) -> None:
        """Do what ``command`` says."""
        match command:
            case SetUpJob():
                self._set_up(command.plan)
            case ConnectJob():
                self._connections.connect(self._jobs[command.job])
            case StartJob():
                self._jobs[command.job].program.start(command.at)
            case HaltJob():
                self._jobs[command.job].program.halt()
                self._tell(Halted(command.job))
            case CloseJob():
                self._close(self._jobs[command.job], command.reset)
            case _:
                self._changes.carry_out(command)

    def _set_up(self, plan: JobPlan) -> None:
        program: JobProgram[TcpSender, TcpReceiver] = program_of(plan, self._loop, self._tell, self._wait_for_room)
        job = HostedJob(plan, program)
        job.program.pcie = self._pcie
        job.program.link_is_busy = lambda flow: link_is_busy(job, flow, self._jobs.values())
        job.program.gpus = self._gpus.share_of(job.name, plan.gpus)
        self._jobs[job.name] = job
        self._connections.listen(job)
        self._tell(Listening(job.name))

    def _receive(self, job: HostedJob, stream: TcpReceiver, _events: int) -> None:
        try:
            stream.receive(job.plan.slice_size)
        except ConnectionError as error:
            self._loop.forget(stream.connection.fileno())
            if not job.program.over and stream.flow not in job.replacing:
                self._tell(Failed(job.name, stream.flow, str(error)))
            return
        for _ in range(stream.completed()):
            self._notify(job.senders[stream.flow], stream.flow)
        job.program.arrived(stream)

    def message_arrived(self, flow: str) -> None:
        """The receiver of ``flow`` reports that its message has arrived; ignored if the job has ended since."""
        job = self._flows.get(flow)
        if job is not None and flow in job.program.out:
            job.program.out[flow].arrived()
            job.program.resume(job.program.out[flow])

    def _go_on(self, stream: TcpSender) -> None:
        job = self._flows.get(stream.flow)
        if job is not None:
            job.program.resume(stream)

    def _wait_for_room(self, stream: TcpSender) -> None:
        job = self._flows[stream.flow]

        def writable(_events: int) -> None:
            self._loop.forget(stream.connection.fileno())
            job.program.resume(stream)

        self._loop.watch(stream.connection.fileno(), select.EPOLLOUT, writable)

    def _close(self, job: HostedJob, reset: bool) -> None:
        del self._jobs[job.name]
        self._pcie.left(job.program.out)
        self._gpus.leave(job.name)
        streams = job.program.out.values()
        retransmits = sum(stream.retransmits() for stream in streams)
        connections = {stream.flow: stream.connection for stream in streams}
        connections.update({stream.flow: stream.connection for stream in job.program.into.values()})
        for flow, connection in connections.items():
            self._loop.forget(connection.fileno())
            self._flows.pop(flow, None)
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        for listener in job.listeners:
            self._loop.forget(listener.fileno())
            listener.close()
        self._tell(Closed(job.name, retransmits))
