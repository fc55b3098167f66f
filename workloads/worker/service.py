"""The worker's commands: set jobs up, connect, start, hold and resume flows, halt, close.

Commands and events are JSON objects, one a line. A command is ``{"op": ...}``:

=========  ===========================================================================
job        set a job up and listen for its flows -> ``listening``
connect    open its outgoing flows -> ``connected`` when those and the incoming stand
start      begin iterating at a given time of the monotonic clock
hold       send nothing more on some flows -> ``held``, flow by flow, once nothing is in flight
resume     go on with held flows
shape      new ``IP_TOS`` (by job or flow, at both ends) and rates (by flow, at the sender) -> ``shaped``
expect     be ready for flows from another source port -> ``expecting``, and ``accepted`` once each stands
reconnect  open held flows anew from another source port -> ``reconnected``, flow by flow
count      new marks by bytes of the message for flows that count them
turns      PCIe link and rank of flows: while one of a smaller rank sends over a link, the others wait
shift      keep the iterations of a job at a phase of a period
halt       send and report nothing more for a job
close      close its connections -> ``closed`` with retransmitted segments
quit       end
=========  ===========================================================================

Events are ``{"event": ...}``; ``iteration`` carries what a job's iteration measured; ``step``, where a
plan asks for it, says that the communication of a phase begins or ends on this host; ``late`` that the
worker was not served for a while.
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import Any

from workloads.iteration.from_plan import program_of
from workloads.iteration.pcie_semaphore import PcieSemaphore
from workloads.iteration.program import JobProgram
from workloads.iteration.shared_gpus import SharedGpus
from workloads.worker.completion_notice import CompletionNotice
from workloads.worker.connections import Connections
from workloads.worker.event_loop import LineReader, Loop
from workloads.worker.flow_commands import FlowChanges
from workloads.worker.heartbeat import Heartbeat
from workloads.worker.hosted_job import HostedJob
from workloads.worker.tcp_endpoints import TcpReceiver, TcpSender


class WorkerService:
    """Executes commands from the engine; one instance per worker process, that of ``host``.

    ``folder`` is where the workers of the run give each other word.
    """

    def __init__(self, folder: str, host: str) -> None:
        self._loop = Loop()
        self._jobs: dict[str, HostedJob] = {}
        self._flows: dict[str, HostedJob] = {}
        self._reader = LineReader(sys.stdin.fileno())
        self._connections = Connections(self._loop, self._tell, self._flows, self._receive)
        self._pcie: PcieSemaphore[TcpSender] = PcieSemaphore(self._go_on)
        self._gpus = SharedGpus()
        self._word = CompletionNotice(self._loop, folder, host, self._message_arrived)
        changes = FlowChanges(self._loop, self._tell, self._jobs, self._flows, self._connections, self._pcie)
        self._operations = {
            "job": self._job,
            "connect": lambda command: self._connections.connect(self._jobs[command["job"]]),
            "start": lambda command: self._jobs[command["job"]].program.start(command["at"]),
            "hold": changes.hold,
            "resume": changes.resume,
            "expect": changes.expect,
            "reconnect": changes.reconnect,
            "shape": changes.shape,
            "count": changes.count,
            "turns": changes.take_turns,
            "shift": changes.shift,
            "halt": lambda command: self._jobs[command["job"]].program.halt(),
            "close": self._close,
            "quit": self._quit,
        }

    def run(self) -> None:
        """Serve until ``quit`` or the end of standard input."""
        self._loop.watch(sys.stdin.fileno(), select.EPOLLIN, self._commands)
        self._tell({"event": "ready"})
        Heartbeat(self._loop, self._tell)
        self._loop.run()

    def _tell(self, event: dict[str, Any]) -> None:
        os.write(sys.stdout.fileno(), json.dumps(event, separators=(",", ":")).encode() + b"\n")

    def _commands(self, _events: int) -> None:
        lines = self._reader.read()
        if lines is None:
            self._loop.running = False
            return
        for line in lines:
            command = json.loads(line)
            self._operations[command["op"]](command)

    def _job(self, command: dict[str, Any]) -> None:
        plan = command["job"]
        program: JobProgram[TcpSender, TcpReceiver] = program_of(plan, self._loop, self._tell, self._wait_for_room)
        job = HostedJob(plan, program)
        job.program.pcie = self._pcie
        job.program.gpus = self._gpus.share_of(job.name, plan["gpus"])
        self._jobs[job.name] = job
        self._connections.listen(job)
        self._tell({"event": "listening", "job": job.name})

    def _receive(self, job: HostedJob, stream: TcpReceiver) -> None:
        try:
            stream.receive(job.plan["slice"])
        except ConnectionError as error:
            self._loop.forget(stream.connection.fileno())
            if not job.program.over and stream.flow not in job.replacing:
                self._tell({"event": "failed", "job": job.name, "flow": stream.flow, "why": str(error)})
            return
        for _ in range(stream.completed()):
            self._word.tell(job.senders[stream.flow], stream.flow)
        job.program.arrived(stream)

    def _message_arrived(self, flow: str) -> None:
        """The receiver of ``flow`` says that its message is there; a job that has ended since does not care."""
        job = self._flows.get(flow)
        if job is not None and flow in job.program.out:
            job.program.out[flow].arrived()
            job.program.writable(job.program.out[flow])

    def _go_on(self, stream: TcpSender) -> None:
        job = self._flows.get(stream.flow)
        if job is not None:
            job.program.resume(stream)

    def _wait_for_room(self, stream: TcpSender) -> None:
        job = self._flows[stream.flow]

        def writable(_events: int) -> None:
            self._loop.forget(stream.connection.fileno())
            job.program.writable(stream)

        self._loop.watch(stream.connection.fileno(), select.EPOLLOUT, writable)

    def _close(self, command: dict[str, Any]) -> None:
        job = self._jobs.pop(command["job"])
        self._pcie.left(job.program.out)
        self._gpus.leave(job.name)
        streams = job.program.out.values()
        retransmits = sum(stream.retransmits() for stream in streams)
        connections = {stream.flow: stream.connection for stream in streams}
        connections.update({stream.flow: stream.connection for stream in job.program.into.values()})
        for flow, connection in connections.items():
            self._loop.forget(connection.fileno())
            self._flows.pop(flow, None)
            connection.close()
        for listener in job.listeners:
            self._loop.forget(listener.fileno())
            listener.close()
        self._tell({"event": "closed", "job": job.name, "retransmits": retransmits})

    def _quit(self, _command: dict[str, Any]) -> None:
        self._loop.running = False
