"""Queue and interface counters of a namespace over netlink, cheap enough to read every second.

``tc -s -j`` for the 1,700 queues of ``clos96`` costs a tenth of a core per sample, most of it in
processes and JSON; the emulation needs that core. One dump over a socket that was opened in the
namespace, and stays in it, costs a few milliseconds.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_RTM_GETLINK = 18
_RTM_GETQDISC = 38
_RTM_GETTCLASS = 42
_RTM_GETTFILTER = 46
_REQUEST_DUMP = 0x301
_REQUEST_ECHO = 9
_TC_H_ROOT = 0xFFFFFFFF
_DONE = 3
_ERROR = 2
_IFLA_IFNAME = 3
_IFLA_STATS64 = 23
_TCA_OPTIONS = 2
_TCA_STATS2 = 7
_TCA_U32_CLASSID = 1
_TCA_U32_COUNTERS = 9
_TCA_HTB_PARAMETERS = 1
_HTB_PARAMETERS = struct.Struct("=8xI8x6I")
_STATS_BASIC = 1
_STATS_QUEUE = 3
_HEADER = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=BBHiIII")
_IFINFO = struct.Struct("=BBHiII")
_ATTRIBUTE = struct.Struct("=HH")
_LARGEST = 1 << 15
"""Bytes of a datagram: a dump's are never larger, and a larger buffer is mapped and unmapped at every read."""
_LENGTH_AND_TYPE = struct.Struct("=IH").unpack_from
_ALL_QUEUES = _HEADER.pack(_HEADER.size + _TCMSG.size, _RTM_GETQDISC, _REQUEST_DUMP, 1, 0) + bytes(_TCMSG.size)


@dataclass(frozen=True, slots=True)
class QueueCounters:
    """Counters of one qdisc since it was made, and what waits in it now; sizes in bytes."""

    interface: int
    handle: int
    bytes: int
    packets: int
    backlog: int
    drops: int


@dataclass(frozen=True, slots=True)
class InterfaceCounters:
    """Name, packets and drops of one interface."""

    index: int
    name: str
    packets: int
    drops: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A qdisc, class or filter as the kernel describes it, its counters left out."""

    kind: str
    parent: int
    handle: int
    attributes: bytes

    @property
    def rate(self) -> int | None:
        """Bit/s that an HTB class is guaranteed; None for anything else."""
        return self.parameters.get("rate")

    @property
    def parameters(self) -> dict[str, int]:
        """Numbers of an HTB class: rates in bit/s, buckets in the kernel's ticks; empty for anything else."""
        for kind, start, end in _attributes(self.attributes, 0, len(self.attributes)):
            if kind == _TCA_HTB_PARAMETERS and end - start == _HTB_PARAMETERS.size:
                rate, ceiling, *rest = _HTB_PARAMETERS.unpack_from(self.attributes, start)
                names = ("burst", "cburst", "quantum", "level", "prio")
                return {"rate": 8 * rate, "ceil": 8 * ceiling, **dict(zip(names, rest, strict=True))}
        return {}

    @property
    def target(self) -> int | None:
        """The class that a filter leads to; None for a filter's table."""
        for kind, start, _ in _attributes(self.attributes, 0, len(self.attributes)):
            if kind == _TCA_U32_CLASSID:
                return int(struct.unpack_from("=I", self.attributes, start)[0])
        return None


@dataclass(frozen=True, slots=True)
class QueuePlaces:
    """Where a dump describes a qdisc, in bytes from its begin.

    ``fixed`` are the 32-bit words that stay as they are while the qdisc does: lengths, numbers and headers.
    ``basic`` are its bytes and packets sent, ``queue`` what waits in it and its drops; None without counters.
    """

    interface: int
    handle: int
    fixed: tuple[int, ...]
    basic: int | None
    queue: int | None


class CounterSocket:
    """A netlink socket that belongs to the namespace in which it was made."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.settimeout(5.0)
        self._socket.bind((0, 0))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def queues(self) -> list[QueueCounters]:
        """Counters of every qdisc of the namespace."""
        return [self._queue(body) for body in self._dump(_RTM_GETQDISC, _TCMSG.pack(0, 0, 0, 0, 0, 0, 0))]

    def queue_dump(self) -> bytes:
        """The kernel's words for every qdisc of the namespace, for :func:`places_of_queues`."""
        self._socket.send(_ALL_QUEUES)
        parts = []
        while True:
            data = self._socket.recv(_LARGEST)
            end = _end_of_dump(data)
            parts.append(data[:end])
            if end is not None:
                return b"".join(parts)

    def root_queue(self, interface: int) -> QueueCounters:
        """Counters of the root qdisc of ``interface`` (index), its children's included."""
        body = _TCMSG.pack(0, 0, 0, interface, 0, _TC_H_ROOT, 0)
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), _RTM_GETQDISC, _REQUEST_ECHO, 1, 0) + body)
        data = self._socket.recv(1 << 14)
        if _HEADER.unpack_from(data)[1] == _ERROR:
            raise OSError(f"interface {interface} has no root queue")
        return self._queue(data[_HEADER.size :])

    def classes(self, interface: int) -> list[QueueCounters]:
        """Counters of every class of ``interface`` (index); ``handle`` is the whole one, major and minor."""
        question = _TCMSG.pack(0, 0, 0, interface, 0, 0, 0)
        return [self._queue(body, whole=True) for body in self._dump(_RTM_GETTCLASS, question)]

    def settings(self, interface: int, filter_parent: int) -> list[Setting]:
        """Every class of ``interface``, and every filter at its qdisc ``filter_parent``, without their counters."""
        classes = self._dump(_RTM_GETTCLASS, _TCMSG.pack(0, 0, 0, interface, 0, 0, 0))
        found = [_setting("class", body) for body in classes]
        filters = self._dump(_RTM_GETTFILTER, _TCMSG.pack(0, 0, 0, interface, 0, filter_parent, 0))
        return found + [_setting("filter", body) for body in filters]

    def interfaces(self) -> list[InterfaceCounters]:
        """Counters of every interface of the namespace."""
        return [self._interface(body) for body in self._dump(_RTM_GETLINK, _IFINFO.pack(0, 0, 0, 0, 0, 0))]

    def _dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST_DUMP, 1, 0) + body)
        while True:
            data = self._socket.recv(_LARGEST)
            offset = 0
            while offset < len(data):
                length, message, _, _, _ = _HEADER.unpack_from(data, offset)
                if message == _DONE:
                    return
                if message == _ERROR:
                    raise OSError("netlink refused to list counters")
                yield data[offset + _HEADER.size : offset + length]
                offset += (length + 3) & ~3

    @staticmethod
    def _queue(body: bytes, whole: bool = False) -> QueueCounters:
        _, _, _, interface, handle, _, _ = _TCMSG.unpack_from(body)
        size = packets = backlog = drops = 0
        for kind, start, end in _attributes(body, _TCMSG.size, len(body)):
            if kind != _TCA_STATS2:
                continue
            for inner, at, _ in _attributes(body, start, end):
                if inner == _STATS_BASIC:
                    size, packets = struct.unpack_from("=QI", body, at)
                elif inner == _STATS_QUEUE:
                    _, backlog, drops = struct.unpack_from("=III", body, at)
        return QueueCounters(interface, handle if whole else handle >> 16, size, packets, backlog, drops)

    @staticmethod
    def _interface(body: bytes) -> InterfaceCounters:
        index = _IFINFO.unpack_from(body)[3]
        name, packets, drops = "", 0, 0
        for kind, start, end in _attributes(body, _IFINFO.size, len(body)):
            if kind == _IFLA_IFNAME:
                name = body[start : end - 1].decode()
            elif kind == _IFLA_STATS64:
                counters = struct.unpack_from("=8Q", body, start)
                packets, drops = counters[0] + counters[1], sum(counters[4:8])
        return InterfaceCounters(index, name, packets, drops)


def places_of_queues(dump: bytes) -> Iterator[QueuePlaces]:
    """Every qdisc that ``dump`` describes."""
    offset = 0
    while offset < len(dump):
        length = _HEADER.unpack_from(dump, offset)[0]
        body, end = offset + _HEADER.size, offset + length
        _, _, _, interface, handle, _, _ = _TCMSG.unpack_from(dump, body)
        fixed = [offset, offset + 4, body + 4, body + 8, body + 12]
        basic = queue = None
        for kind, start, stop in _attributes(dump, body + _TCMSG.size, end):
            fixed.append(start - _ATTRIBUTE.size)
            if kind != _TCA_STATS2:
                continue
            for inner, at, _ in _attributes(dump, start, stop):
                fixed.append(at - _ATTRIBUTE.size)
                basic = at if inner == _STATS_BASIC else basic
                queue = at if inner == _STATS_QUEUE else queue
        yield QueuePlaces(interface, handle >> 16, tuple(fixed), basic, queue)
        offset += (length + 3) & ~3


def _end_of_dump(data: bytes) -> int | None:
    """Where in a datagram the message is that ends a dump; None if more datagrams follow.

    Raises OSError if the kernel refuses.
    """
    offset = 0
    while offset < len(data):
        length, message = _LENGTH_AND_TYPE(data, offset)
        if message == _DONE:
            return offset
        if message == _ERROR:
            raise OSError("netlink refused to list counters")
        offset += (length + 3) & ~3
    return None


def _setting(kind: str, body: bytes) -> Setting:
    _, _, _, _, handle, parent, _ = _TCMSG.unpack_from(body)
    kept = b""
    for attribute, start, end in _attributes(body, _TCMSG.size, len(body)):
        if attribute != _TCA_OPTIONS:
            continue
        for inner, at, stop in _attributes(body, start, end):
            if kind != "filter" or inner != _TCA_U32_COUNTERS:
                kept += body[at - _ATTRIBUTE.size : at + (stop - at + 3 & ~3)]
    return Setting(kind, parent, handle, kept)


def _attributes(body: bytes, offset: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(type, start, end) of the value of each attribute in ``body[offset:end]``."""
    while offset + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(body, offset)
        if length < _ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, offset + _ATTRIBUTE.size, offset + length
        offset += (length + 3) & ~3
