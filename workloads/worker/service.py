"""The worker's commands: set jobs up, connect, start, hold and resume flows, halt, close.

Commands and events are JSON objects, one a line. A command is ``{"op": ...}``:

=========  ===========================================================================
job        set a job up and listen for its flows -> ``listening``
connect    open its outgoing flows -> ``connected`` when those and the incoming stand
start      begin iterating at a given time of the monotonic clock
hold       send nothing more on some flows -> ``held``, flow by flow, once nothing is in flight
resume     go on with held flows
shape      new ``IP_TOS`` (by job or flow, at both ends) and rates (by flow, at the sender) -> ``shaped``
count      new marks by bytes of the message for flows that count them
shift      keep the iterations of a job at a phase of a period
halt       send and report nothing more for a job
close      close its connections -> ``closed`` with retransmitted segments
quit       end
=========  ===========================================================================

Events are ``{"event": ...}``; ``iteration`` carries what a job's iteration measured; ``step``, where a
plan asks for it, says that the communication of a phase begins or ends on this host.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from functools import partial
from typing import Any

from workloads.job import Job, Phase, Straggler
from workloads.variation import compute_time
from workloads.worker.loop import LineReader, Loop
from workloads.worker.marks import CHANGING, NO_RATE, ByteMarks, keep_little_unsent, pace, set_tos, unacknowledged
from workloads.worker.program import JobProgram, PhasePlan, StepReport
from workloads.worker.rhythm import Rhythm
from workloads.worker.streams import InStream, OutStream, prepare

_DRAIN_POLL_S = 0.002


class HostedJob:
    """A job on this host with its sockets."""

    def __init__(self, plan: dict[str, Any], program: JobProgram) -> None:
        self.plan = plan
        self.name: str = plan["name"]
        self.program = program
        self.listeners: list[socket.socket] = []
        self.expected = {
            (flow["source"], flow["source_port"], flow["target"], flow["target_port"]): flow["flow"]
            for flow in plan["incoming"]
        }
        self.connecting: set[str] = {flow["flow"] for flow in plan["outgoing"]}

    def complete(self) -> bool:
        """Whether every connection, out and in, stands."""
        return not self.connecting and len(self.program.into) == len(self.expected)


class WorkerService:
    """Executes commands from the engine; one instance per worker process."""

    def __init__(self) -> None:
        self._loop = Loop()
        self._jobs: dict[str, HostedJob] = {}
        self._flows: dict[str, HostedJob] = {}
        self._reader = LineReader(sys.stdin.fileno())

    def run(self) -> None:
        """Serve until ``quit`` or the end of standard input."""
        self._loop.watch(sys.stdin.fileno(), select.EPOLLIN, self._commands)
        self._tell({"event": "ready"})
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
            getattr(self, f"_op_{command['op']}")(command)

    # Setting up

    def _op_job(self, command: dict[str, Any]) -> None:
        plan = command["job"]
        job = HostedJob(plan, self._program(plan))
        self._jobs[job.name] = job
        for address in sorted({(flow["target"], flow["target_port"]) for flow in plan["incoming"]}):
            self._listen(job, address)
        self._tell({"event": "listening", "job": job.name})

    def _program(self, plan: dict[str, Any]) -> JobProgram:
        name, time_scale, seed, gpus = plan["name"], plan["time_scale"], plan["seed"], plan["gpus"]
        job = Job(
            name=name,
            model="",
            gpus=tuple(gpus),
            phases=tuple(Phase(phase["compute_s"], phase["overlap"], "") for phase in plan["phases"]),
            flows=(),
            flops=0.0,
            iterations=0,
            jitter=plan["jitter"],
            stragglers=tuple(Straggler(gpu, factor) for gpu, factor in plan["stragglers"]),
        )

        def compute_times(iteration: int, phase: int) -> list[float]:
            return [compute_time(job, gpu, iteration, phase, seed) * time_scale for gpu in gpus]

        def report(iteration: int, rows: list[list[object]], late: float, waited: float) -> None:
            event = {"event": "iteration", "job": name, "iteration": iteration, "phases": rows}
            self._tell({**event, "late": late, "waited": waited})

        def step(what: str, iteration: int, phase: int) -> None:
            event = {"event": "step", "job": name, "what": what, "iteration": iteration, "phase": phase}
            self._tell({**event, "at": self._loop.clock()})

        phases = tuple(
            PhasePlan(
                overlap=phase["overlap"],
                out=tuple((flow, size, after, lead) for flow, size, after, lead in phase["out"]),
                into=tuple((flow, size) for flow, size in phase["in"]),
            )
            for phase in plan["phases"]
        )
        told: StepReport | None = step if plan["steps"] else None
        return JobProgram(
            phases, compute_times, plan["slice"], plan["departure"], plan["iterations"],
            self._loop.clock, self._loop.at, report, self._wait_for_room, told,
        )  # fmt: skip

    def _listen(self, job: HostedJob, address: tuple[str, int]) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        prepare(listener, job.plan["window"])
        listener.bind(address)
        listener.listen(128)
        listener.setblocking(False)
        job.listeners.append(listener)
        self._loop.watch(listener.fileno(), select.EPOLLIN, lambda _events: self._accept(job, listener))

    def _accept(self, job: HostedJob, listener: socket.socket) -> None:
        while True:
            try:
                connection, peer = listener.accept()
            except BlockingIOError:
                return
            flow = job.expected[(*peer, *connection.getsockname())]
            connection.setblocking(False)
            prepare(connection, job.plan["window"])
            stream = InStream(flow, connection, _byte_marks(job.plan["byte_marks"].get(flow)))
            stream.mark(job.plan["tos"].get(flow, 0))
            job.program.into[flow] = stream
            self._flows.setdefault(flow, job)
            self._watch_incoming(job, stream)
            self._tell_if_connected(job)

    def _watch_incoming(self, job: HostedJob, stream: InStream) -> None:
        slice_size: int = job.plan["slice"]
        handler = partial(self._receive, job, stream, slice_size)
        self._loop.watch(stream.connection.fileno(), select.EPOLLIN, handler)

    def _op_connect(self, command: dict[str, Any]) -> None:
        job = self._jobs[command["job"]]
        for flow in job.plan["outgoing"]:
            connection = socket.socket()
            connection.setblocking(False)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            prepare(connection, job.plan["window"])
            if flow["flow"] in job.plan["byte_marks"]:
                keep_little_unsent(connection, job.plan["slice"])
            set_tos(connection, job.plan["tos"].get(flow["flow"], 0))
            connection.bind((flow["source"], flow["source_port"]))
            connection.connect_ex((flow["target"], flow["target_port"]))
            self._watch_connecting(job, flow["flow"], connection)
        self._tell_if_connected(job)

    def _watch_connecting(self, job: HostedJob, flow: str, connection: socket.socket) -> None:
        def connected(_events: int) -> None:
            self._loop.forget(connection.fileno())
            failed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failed:
                self._tell({"event": "failed", "job": job.name, "flow": flow, "why": os.strerror(failed)})
                return
            marks = _byte_marks(job.plan["byte_marks"].get(flow))
            job.program.out[flow] = OutStream(flow, connection, job.plan["tos"].get(flow, 0), marks)
            self._flows[flow] = job
            job.connecting.discard(flow)
            self._tell_if_connected(job)

        self._loop.watch(connection.fileno(), select.EPOLLOUT, connected)

    def _tell_if_connected(self, job: HostedJob) -> None:
        if job.complete():
            self._tell({"event": "connected", "job": job.name})

    # Running

    def _op_start(self, command: dict[str, Any]) -> None:
        self._jobs[command["job"]].program.start(command["at"])

    def _receive(self, job: HostedJob, stream: InStream, slice_size: int, _events: int) -> None:
        try:
            stream.receive(slice_size)
        except ConnectionError as error:
            self._loop.forget(stream.connection.fileno())
            if not job.program.halted:
                self._tell({"event": "failed", "job": job.name, "flow": stream.flow, "why": str(error)})
            return
        job.program.arrived(stream)

    def _wait_for_room(self, stream: OutStream) -> None:
        job = self._flows[stream.flow]

        def writable(_events: int) -> None:
            self._loop.forget(stream.connection.fileno())
            job.program.writable(stream)

        self._loop.watch(stream.connection.fileno(), select.EPOLLOUT, writable)

    # Changing path, level and rate of running flows

    def _op_hold(self, command: dict[str, Any]) -> None:
        for flow in command["flows"]:
            if flow not in self._flows:
                self._tell({"event": "held", "flow": flow})
                continue
            stream = self._flows[flow].program.out[flow]
            stream.held |= CHANGING
            self._drain(stream)

    def _drain(self, stream: OutStream) -> None:
        """Say that a flow is held once every byte of it is acknowledged."""
        if stream.flow in self._flows and unacknowledged(stream.connection):
            self._loop.at(self._loop.clock() + _DRAIN_POLL_S, lambda _late: self._drain(stream))
        else:
            self._tell({"event": "held", "flow": stream.flow})

    def _op_resume(self, command: dict[str, Any]) -> None:
        for flow in command["flows"]:
            if flow in self._flows:
                stream = self._flows[flow].program.out[flow]
                stream.held &= ~CHANGING
                self._flows[flow].program.resume(stream)

    def _op_shape(self, command: dict[str, Any]) -> None:
        for name, tos in command["tos"].items():
            job = self._jobs.get(name)
            if job is not None:
                self._mark_all(job, tos)
        for flow, tos in self._open_flows(command["flows"]):
            self._mark(self._flows[flow], flow, tos)
        for flow, rate in self._open_flows(command["rates"]):
            self._set_rate(self._flows[flow].program.out[flow], rate)
        self._tell({"event": "shaped", "cause": command["cause"], "at": self._loop.clock()})

    def _mark_all(self, job: HostedJob, tos: int) -> None:
        for flow in (*job.program.out, *job.program.into):
            self._mark(job, flow, tos)

    def _mark(self, job: HostedJob, flow: str, tos: int) -> None:
        stream: OutStream | InStream = job.program.out[flow] if flow in job.program.out else job.program.into[flow]
        if stream.marks is None:
            stream.mark(tos)

    def _set_rate(self, stream: OutStream, rate: float | None) -> None:
        """Pace a flow; ``rate`` in bytes per second, 0 to hold it, None for no limit."""
        if rate == 0:
            stream.held |= NO_RATE
            return
        pace(stream.connection, rate)
        if stream.held & NO_RATE:
            stream.held &= ~NO_RATE
            self._flows[stream.flow].program.resume(stream)

    def _op_count(self, command: dict[str, Any]) -> None:
        for flow, given in self._open_flows(command["flows"]):
            program = self._flows[flow].program
            stream: OutStream | InStream = program.out[flow] if flow in program.out else program.into[flow]
            stream.marks = _byte_marks(given)

    def _op_shift(self, command: dict[str, Any]) -> None:
        job = self._jobs.get(command["job"])
        if job is not None:
            job.program.rhythm = Rhythm(**command["rhythm"]) if command["rhythm"] else None

    def _open_flows(self, flows: dict[str, Any]) -> list[tuple[str, Any]]:
        """(flow, value) of those that are still open: a job may end while it is being changed."""
        return [(flow, value) for flow, value in flows.items() if flow in self._flows]

    # The end

    def _op_halt(self, command: dict[str, Any]) -> None:
        self._jobs[command["job"]].program.halt()

    def _op_close(self, command: dict[str, Any]) -> None:
        job = self._jobs.pop(command["job"])
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

    def _op_quit(self, _command: dict[str, Any]) -> None:
        self._loop.running = False


def _byte_marks(given: dict[str, Any] | None) -> ByteMarks | None:
    return None if given is None else ByteMarks(given["left"], tuple(given["thresholds"]), tuple(given["marks"]))
