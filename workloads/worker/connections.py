"""Opening the connections of a job's flows, and opening one anew from another source port."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from workloads.iteration.from_plan import Tell
from workloads.worker.event_loop import Loop
from workloads.worker.hosted_job import HostedJob
from workloads.worker.socket_options import keep_little_unsent, set_tos
from workloads.worker.tcp_endpoints import TcpReceiver, TcpSender, prepare


class Connections:
    """Listens and connects; ``flows`` (flow -> job) takes what stands. ``receive`` is called where bytes have come."""

    def __init__(
        self,
        loop: Loop,
        tell: Tell,
        flows: dict[str, HostedJob],
        receive: Callable[[HostedJob, TcpReceiver], None],
    ) -> None:
        self._loop = loop
        self._tell = tell
        self._flows = flows
        self._receive = receive

    def listen(self, job: HostedJob) -> None:
        """Listen for the job's incoming flows."""
        for target, port in sorted({(flow["target"], flow["target_port"]) for flow in job.plan["incoming"]}):
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            prepare(listener, job.plan["window"])
            listener.bind((target, port))
            listener.listen(128)
            listener.setblocking(False)
            job.listeners.append(listener)
            self._watch_listener(job, listener)

    def _watch_listener(self, job: HostedJob, listener: socket.socket) -> None:
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
            if flow in job.program.into:
                self._replace_incoming(job, job.program.into[flow], connection)
                continue
            stream = TcpReceiver(flow, connection, job.byte_marks(flow), job.message_sizes(flow))
            stream.mark(job.first_tos(flow))
            job.program.into[flow] = stream
            self._flows.setdefault(flow, job)
            self._watch_incoming(job, stream)
            self._tell_if_connected(job)

    def _watch_incoming(self, job: HostedJob, stream: TcpReceiver) -> None:
        self._loop.watch(stream.connection.fileno(), select.EPOLLIN, lambda _events: self._receive(job, stream))

    def _replace_incoming(self, job: HostedJob, stream: TcpReceiver, connection: socket.socket) -> None:
        """Take in what is left on the old connection, and go on with the new one."""
        self._receive(job, stream)
        old = stream.connection
        self._loop.forget(old.fileno())
        old.close()
        stream.move_to(connection)
        job.replacing.discard(stream.flow)
        self._watch_incoming(job, stream)
        self._tell({"event": "accepted", "flow": stream.flow})

    def connect(self, job: HostedJob) -> None:
        """Open the job's outgoing flows."""
        for flow, ends in job.outgoing.items():
            self._connect(job, flow, ends, job.first_tos(flow), partial(self._opened, job, flow))
        self._tell_if_connected(job)

    def _opened(self, job: HostedJob, flow: str, connection: socket.socket) -> None:
        stream = job.program.out[flow] = TcpSender(
            flow,
            connection,
            job.first_tos(flow),
            job.byte_marks(flow),
            confirmed=True,
            link_rate=job.plan["link_rate"],
        )
        stream.opened()
        self._flows[flow] = job
        job.connecting.discard(flow)
        self._tell_if_connected(job)

    def reconnect(self, job: HostedJob, flow: str, source_port: int) -> None:
        """Open ``flow``, which is held and has nothing in flight, anew from ``source_port``; tell when it stands."""
        stream = job.program.out[flow]
        ends = job.outgoing[flow] = {**job.outgoing[flow], "source_port": source_port}

        def opened(connection: socket.socket) -> None:
            self._loop.forget(stream.connection.fileno())
            stream.move_to(connection)
            stream.opened()
            self._tell({"event": "reconnected", "flow": flow})

        self._connect(job, flow, ends, stream.tos, opened)

    def _connect(
        self, job: HostedJob, flow: str, ends: dict[str, Any], tos: int, opened: Callable[[socket.socket], None]
    ) -> None:
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        prepare(connection, job.plan["window"])
        if flow in job.plan["byte_marks"]:
            keep_little_unsent(connection, job.plan["slice"])
        set_tos(connection, tos)
        connection.bind((ends["source"], ends["source_port"]))
        connection.connect_ex((ends["target"], ends["target_port"]))

        def connected(_events: int) -> None:
            self._loop.forget(connection.fileno())
            failed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failed:
                self._tell({"event": "failed", "job": job.name, "flow": flow, "why": os.strerror(failed)})
            else:
                opened(connection)

        self._loop.watch(connection.fileno(), select.EPOLLOUT, connected)

    def _tell_if_connected(self, job: HostedJob) -> None:
        if job.complete():
            self._tell({"event": "connected", "job": job.name})
