"""Opening the connections of a job's flows, and opening one again from another source port."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from workloads.iteration.job_plan import PlannedConnection
from workloads.iteration.protocol import Accepted, Connected, Failed, Reconnected, Tell
from workloads.worker.event_loop import Loop
from workloads.worker.hosted_job import HostedJob
from workloads.worker.namespaces import Namespace
from workloads.worker.socket_options import ACKNOWLEDGEMENT_TOS, keep_little_unsent, set_tos
from workloads.worker.tcp_endpoints import TcpReceiver, TcpSender, prepare


class Connections:
    """Listens and connects; ``flows`` (flow -> job) takes what is open. ``receive`` is called when bytes arrive.

    Its sockets are made in ``namespace``, where they stay; what they accept is there too.
    """

    def __init__(
        self,
        loop: Loop,
        namespace: Namespace,
        tell: Tell,
        flows: dict[str, HostedJob],
        receive: Callable[[HostedJob, TcpReceiver, int], None],
    ) -> None:
        self._loop = loop
        self._namespace = namespace
        self._tell = tell
        self._flows = flows
        self._receive = receive

    def listen(self, job: HostedJob) -> None:
        """Listen for the job's incoming flows."""
        places = sorted({(planned.target, planned.target_port) for planned in job.plan.incoming})
        self._namespace.prepare(len(places) + len(job.outgoing))
        for target, port in places:
            listener = self._namespace.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # The kernel fixes how large a window can be told of when a connection is opened, by the listener's clamp.
            into = [planned.flow for planned in job.plan.incoming if planned.address[2:] == (target, port)]
            prepare(listener, max(job.plan.largest_window(flow) for flow in into))
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
            prepare(connection, job.plan.window)
            set_tos(connection, ACKNOWLEDGEMENT_TOS)
            if flow in job.program.into:
                self._replace_incoming(job, job.program.into[flow], connection)
                continue
            stream = TcpReceiver(
                flow,
                connection,
                job.message_sizes(flow),
                job.forwarded_sizes(flow),
                job.plan.window,
                job.plan.byte_windows.get(flow),
            )
            job.program.into[flow] = stream
            self._flows.setdefault(flow, job)
            self._watch_incoming(job, stream)
            self._tell_if_connected(job)

    def _watch_incoming(self, job: HostedJob, stream: TcpReceiver) -> None:
        self._loop.watch(stream.connection.fileno(), select.EPOLLIN, partial(self._receive, job, stream))

    def _replace_incoming(self, job: HostedJob, stream: TcpReceiver, connection: socket.socket) -> None:
        """Receive what is left on the old connection, and go on with the new one."""
        self._receive(job, stream, select.EPOLLIN)
        old = stream.connection
        self._loop.forget(old.fileno())
        old.close()
        stream.move_to(connection)
        job.replacing.discard(stream.flow)
        self._watch_incoming(job, stream)
        self._tell(Accepted(stream.flow))

    def connect(self, job: HostedJob) -> None:
        """Open the job's outgoing flows."""
        for flow, planned in job.outgoing.items():
            self._connect(job, planned, job.first_tos(flow), partial(self._opened, job, flow))
        self._tell_if_connected(job)

    def _opened(self, job: HostedJob, flow: str, connection: socket.socket) -> None:
        stream = job.program.out[flow] = TcpSender(
            flow,
            connection,
            job.first_tos(flow),
            job.plan.byte_marks.get(flow),
            confirmed=True,
            link_rate=job.plan.link_rate,
        )
        stream.opened()
        self._flows[flow] = job
        job.connecting.discard(flow)
        self._tell_if_connected(job)

    def reconnect(self, job: HostedJob, flow: str, source_port: int) -> None:
        """Open ``flow``, which is held and has nothing in flight, again from ``source_port``; report once open."""
        stream = job.program.out[flow]
        planned = job.outgoing[flow] = replace(job.outgoing[flow], source_port=source_port)

        def opened(connection: socket.socket) -> None:
            self._loop.forget(stream.connection.fileno())
            stream.move_to(connection)
            stream.opened()
            self._tell(Reconnected(flow))

        self._connect(job, planned, stream.tos, opened)

    def _connect(
        self, job: HostedJob, planned: PlannedConnection, tos: int, opened: Callable[[socket.socket], None]
    ) -> None:
        connection = self._namespace.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        prepare(connection, job.plan.largest_window(planned.flow))
        if planned.flow in job.plan.byte_marks:
            keep_little_unsent(connection, job.plan.slice_size)
        set_tos(connection, tos)
        connection.bind((planned.source, planned.source_port))
        connection.connect_ex((planned.target, planned.target_port))

        def connected(_events: int) -> None:
            self._loop.forget(connection.fileno())
            failed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failed:
                self._tell(Failed(job.name, planned.flow, os.strerror(failed)))
            else:
                opened(connection)

        self._loop.watch(connection.fileno(), select.EPOLLOUT, connected)

    def _tell_if_connected(self, job: HostedJob) -> None:
        if job.complete():
            self._tell(Connected(job.name))
