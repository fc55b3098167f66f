"""A few packets of every host, taken off its interfaces while the run goes on: what really was on the wire."""

from __future__ import annotations

import ctypes
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from topologies.mininet_adapter.network import EmulatedNetwork
from topologies.mininet_adapter.system import network_namespace_of

SHARE: Final = 1 / 2
"""Share of packets, drawn by the kernel, that is taken, divided by the number of hosts: as many on any fabric."""
PIECE_S: Final = 0.001
"""Work after which urgent tasks have their turn: to give them one costs more than to find that nothing has come."""

_SNAP: Final = 96
_SO_ATTACH_FILTER = 26
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35
_RANDOM = 0xFFFFF000 + 56
_LOAD, _IF_AT_LEAST, _RETURN = 0x20, 0x35, 0x06
_ETH_P_ALL = 0x0003  # only such a socket is shown what the host sends
_ETH_P_IP = 0x0800
_OUTGOING = 4


@dataclass(frozen=True, slots=True)
class TakenPacket:
    """The head of an IP packet; ``outgoing`` where its sender's NIC has just sent it. Machine's clock."""

    time_s: float
    host: str
    outgoing: bool
    head: bytes


class PacketTap:
    """Listens on all interfaces of all hosts; :meth:`drain` collects what has come since the last time."""

    def __init__(self, network: EmulatedNetwork) -> None:
        self.packets: list[TakenPacket] = []
        self._sockets: list[tuple[str, socket.socket]] = []
        self._ports = frozenset(network.fabric.ports)  # packets pass the queues of PCIe too
        share = SHARE / len(network.part.hosts)
        for host, pid in network.namespaces():
            if pid is not None:
                with network_namespace_of(pid):
                    self._sockets.append((host, _listen(share)))

    def drain(self) -> None:
        """Collect what has come."""
        for _ in self.draining():
            pass

    def draining(self) -> Iterator[None]:
        """Collect, host by host; a packet's time is when it was taken, not when it is collected."""
        offset = time.monotonic() - time.time()
        begun = time.monotonic()
        for host, listener in self._sockets:
            while True:
                try:
                    head, ancillary, _, address = listener.recvmsg(_SNAP, 64)
                except BlockingIOError:
                    break
                if address[1] == _ETH_P_IP and address[0] in self._ports:
                    taken = TakenPacket(_stamp(ancillary) + offset, host, address[2] == _OUTGOING, head)
                    self.packets.append(taken)
            if time.monotonic() - begun >= PIECE_S:
                yield
                begun = time.monotonic()

    def close(self) -> None:
        """Stop listening."""
        for _, listener in self._sockets:
            listener.close()
        self._sockets.clear()


def _listen(share: float) -> socket.socket:
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, socket.htons(_ETH_P_ALL))
    least = round((1 - share) * 0xFFFFFFFF)
    code = [(_LOAD, 0, 0, _RANDOM), (_IF_AT_LEAST, 0, 1, least), (_RETURN, 0, 0, _SNAP), (_RETURN, 0, 0, 0)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in code))
    listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HL", len(code), ctypes.addressof(program)))
    listener.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 8 << 20)
    listener.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return listener


def _stamp(ancillary: list[tuple[int, int, bytes]]) -> float:
    """Seconds of the wall clock at which the kernel took the packet."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("ll", data[:16])
            return float(seconds) + float(nanoseconds) * 1e-9
    return time.time()
