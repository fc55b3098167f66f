"""The worker process: one loop for all its hosts, commands in and events out, one a line."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping
from functools import partial

from workloads.iteration.protocol import Event, Quit, Ready, decode_command, encode_event
from workloads.worker.completion_notice import CompletionNotice
from workloads.worker.event_loop import LineReader, Loop
from workloads.worker.heartbeat import Heartbeat
from workloads.worker.namespaces import Namespace
from workloads.worker.service import HostService


class WorkerProcess:
    """Serves ``hosts`` (host -> its network namespace).

    ``folder`` is where the workers of the run notify each other of messages that have arrived.
    """

    def __init__(self, folder: str, hosts: Mapping[str, Namespace]) -> None:
        self._loop = Loop()
        self._reader = LineReader(sys.stdin.fileno())
        names = tuple(hosts)
        notices = CompletionNotice(self._loop, folder, names, self._message_arrived)
        self._hosts = {
            host: HostService(self._loop, namespace, partial(self._tell, host), notices.tell)
            for host, namespace in hosts.items()
        }
        self._notices, self._first = notices, names[0]

    def run(self) -> None:
        """Serve until :class:`Quit`, the end of standard input, or until nobody reads standard output."""
        self._loop.watch(sys.stdin.fileno(), select.EPOLLIN, self._commands)
        for host in self._hosts:
            self._tell(host, Ready())
        Heartbeat(self._loop, partial(self._tell, self._first))
        self._loop.run()
        self._notices.close()

    def _tell(self, host: str, event: Event) -> None:
        try:
            os.write(sys.stdout.fileno(), encode_event(host, event))
        except BrokenPipeError:  # the engine has ended, and other workers report closed connections
            self._loop.running = False

    def _commands(self, _events: int) -> None:
        lines = self._reader.read()
        if lines is None:
            self._loop.running = False
            return
        for line in lines:
            host, command = decode_command(line)
            if isinstance(command, Quit):
                self._loop.running = False
            else:
                self._hosts[host].carry_out(command)

    def _message_arrived(self, host: str, flow: str) -> None:
        self._hosts[host].message_arrived(flow)
