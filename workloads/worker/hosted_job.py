"""A job on this host: its plan, its program, its sockets."""

from __future__ import annotations

import socket
from typing import Any

from workloads.iteration.byte_marks import ByteMarks
from workloads.iteration.from_plan import byte_marks
from workloads.iteration.program import JobProgram
from workloads.worker.tcp_endpoints import TcpReceiver, TcpSender

Address = tuple[str, int, str, int]
"""Source address and port, target address and port."""


class HostedJob:
    """A job on this host with its sockets. ``expected``: five-tuple of an incoming connection -> its flow."""

    def __init__(self, plan: dict[str, Any], program: JobProgram[TcpSender, TcpReceiver]) -> None:
        self.plan = plan
        self.name: str = plan["name"]
        self.program = program
        self.listeners: list[socket.socket] = []
        self.expected: dict[Address, str] = {
            (flow["source"], flow["source_port"], flow["target"], flow["target_port"]): flow["flow"]
            for flow in plan["incoming"]
        }
        self.outgoing: dict[str, dict[str, Any]] = {flow["flow"]: flow for flow in plan["outgoing"]}
        self.senders: dict[str, str] = {flow["flow"]: flow["peer"] for flow in plan["incoming"]}
        self.connecting: set[str] = set(self.outgoing)
        self.replacing: set[str] = set()
        self.incoming = len(self.expected)

    def complete(self) -> bool:
        """Whether every connection, out and in, stands."""
        return not self.connecting and len(self.program.into) == self.incoming

    def stream(self, flow: str) -> TcpSender | TcpReceiver:
        """The end of ``flow`` that is here."""
        return self.program.out[flow] if flow in self.program.out else self.program.into[flow]

    def first_tos(self, flow: str) -> int:
        """The mark that ``flow`` begins with."""
        return int(self.plan["tos"].get(flow, 0))

    def message_sizes(self, flow: str) -> list[int]:
        """Bytes of the messages that come in on ``flow`` in an iteration, in order."""
        return [size for phase in self.plan["phases"] for its, size in phase["in"] if its == flow]

    def byte_marks(self, flow: str) -> ByteMarks | None:
        """The marks by bytes that ``flow`` begins with."""
        return byte_marks(self.plan["byte_marks"].get(flow))
