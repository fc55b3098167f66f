"""Queue and interface counters of a namespace over netlink, cheap enough to read every second.

``tc -s -j`` for the 1,700 queues of ``clos96`` costs a tenth of a core per sample, most of it in
processes and JSON; the emulation needs that core. One dump over a socket that was opened in the
namespace, and stays in it, costs a few milliseconds.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

from topologies.mininet_adapter.netlink_messages import ATTRIBUTE, ERROR, HEADER, TC_MESSAGE, packed
from topologies.shaping import ACKNOWLEDGEMENT_CLASS

INTERFACE_HEADER: Final = struct.Struct("=BBHiII")
"""Of a message about an interface (``ifinfomsg``): family, padding, type, index, flags, changed flags."""
RTM_GETLINK: Final = 18
REQUEST_DUMP: Final = 0x301
"""Flags of a request that lists everything there is."""
ACKNOWLEDGEMENTS: Final = 0x10000 | ACKNOWLEDGEMENT_CLASS
"""The kernel's number of the class of acknowledgements."""
_RTM_GETQDISC = 38
_RTM_GETTCLASS = 42
_RTM_GETTFILTER = 46
_REQUEST_ECHO = 9
_TC_H_ROOT = 0xFFFFFFFF
_DONE = 3
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
_LARGEST = 1 << 15
"""Bytes of a datagram: a dump's are never larger, and a larger buffer is mapped and unmapped at every read."""
_PATIENCE_S: Final = 5
_LENGTH_AND_TYPE = struct.Struct("=IH").unpack_from
_ALL_QUEUES = packed(_RTM_GETQDISC, REQUEST_DUMP, bytes(TC_MESSAGE.size))


class QueueCounters(NamedTuple):
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
    """Where a dump describes a qdisc or class, in bytes from its begin; ``handle`` is the whole one, major and minor.

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
        # A timeout of Python's own asks the kernel before every call whether it may: twice the calls.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", _PATIENCE_S, 0))
        self._socket.bind((0, 0))

        self._patterns: dict[tuple[int, int, int], QueuePattern] = {}

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def queues(self) -> list[QueueCounters]:
        """Counters of every qdisc of the namespace."""
        return [self._queue(body) for body in self._dump(_RTM_GETQDISC, TC_MESSAGE.pack(0, 0, 0, 0, 0, 0, 0))]

    def queue_dump(self) -> bytes:
        """The kernel's words for every qdisc of the namespace, for :func:`places_of_queues`."""
        return self._whole_dump(_ALL_QUEUES)

    def root_queue(self, interface: int) -> QueueCounters:
        """Counters of the root qdisc of ``interface`` (index), its children's included."""
        return self._queue_at(interface, _TC_H_ROOT, "root queue")

    def data_queue(self, interface: int) -> QueueCounters:
        """As :meth:`root_queue`, without the bytes and packets of acknowledgements, which the shaper does not count."""
        whole = self.root_queue(interface)
        other = self._queue_at(interface, ACKNOWLEDGEMENTS, "queue of acknowledgements")
        return whole._replace(bytes=whole.bytes - other.bytes, packets=whole.packets - other.packets)

    def _queue_at(self, interface: int, parent: int, name: str) -> QueueCounters:
        """Counters of the qdisc of ``interface`` at ``parent``; OSError that says ``name`` where there is none."""
        self._socket.send(_request(_RTM_GETQDISC, interface, parent, _REQUEST_ECHO))
        data = self._socket.recv(_LARGEST)
        if HEADER.unpack_from(data)[1] == ERROR:
            raise OSError(f"interface {interface} has no {name}")
        found = self._read(_RTM_GETQDISC, interface, parent, data)[0]
        return found._replace(handle=found.handle >> 16)

    def classes(self, interface: int) -> list[QueueCounters]:
        """Counters of every class of ``interface`` (index); ``handle`` is the whole one, major and minor."""
        data = self._whole_dump(_request(_RTM_GETTCLASS, interface, 0, REQUEST_DUMP))
        return self._read(_RTM_GETTCLASS, interface, 0, data)

    def _read(self, kind: int, interface: int, parent: int, data: bytes) -> list[QueueCounters]:
        """Counters in ``data``, at the places where those of the same request were the last time if they still are."""
        pattern = self._patterns.get((kind, interface, parent))
        found = None if pattern is None else pattern.read(data)
        if found is None:
            pattern = self._patterns[kind, interface, parent] = QueuePattern(data)
            found = pattern.read(data)
        assert found is not None
        return found

    def _whole_dump(self, request: bytes) -> bytes:
        self._socket.send(request)
        parts = []
        while True:
            data = self._socket.recv(_LARGEST)
            end = _end_of_dump(data)
            parts.append(data[:end])
            if end is not None:
                return b"".join(parts)

    def settings(self, interface: int, filter_parents: Sequence[int]) -> list[Setting]:
        """Every class of ``interface``, and every filter at its qdiscs ``filter_parents``, without their counters."""
        classes = self._dump(_RTM_GETTCLASS, TC_MESSAGE.pack(0, 0, 0, interface, 0, 0, 0))
        found = [_setting("class", body) for body in classes]
        for parent in filter_parents:
            filters = self._dump(_RTM_GETTFILTER, TC_MESSAGE.pack(0, 0, 0, interface, 0, parent, 0))
            found += [_setting("filter", body) for body in filters]
        return found

    def interfaces(self) -> list[InterfaceCounters]:
        """Counters of every interface of the namespace."""
        return [self._interface(body) for body in self._dump(RTM_GETLINK, INTERFACE_HEADER.pack(0, 0, 0, 0, 0, 0))]

    def _dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        self._socket.send(packed(kind, REQUEST_DUMP, body))
        while True:
            data = self._socket.recv(_LARGEST)
            offset = 0
            while offset < len(data):
                length, message, _, _, _ = HEADER.unpack_from(data, offset)
                if message == _DONE:
                    return
                if message == ERROR:
                    raise OSError("netlink refused to list counters")
                yield data[offset + HEADER.size : offset + length]
                offset += (length + 3) & ~3

    @staticmethod
    def _queue(body: bytes) -> QueueCounters:
        _, _, _, interface, handle, _, _ = TC_MESSAGE.unpack_from(body)
        size = packets = backlog = drops = 0
        for kind, start, end in _attributes(body, TC_MESSAGE.size, len(body)):
            if kind != _TCA_STATS2:
                continue
            for inner, at, _ in _attributes(body, start, end):
                if inner == _STATS_BASIC:
                    size, packets = struct.unpack_from("=QI", body, at)
                elif inner == _STATS_QUEUE:
                    _, backlog, drops = struct.unpack_from("=III", body, at)
        return QueueCounters(interface, handle >> 16, size, packets, backlog, drops)

    @staticmethod
    def _interface(body: bytes) -> InterfaceCounters:
        index = INTERFACE_HEADER.unpack_from(body)[3]
        name, packets, drops = "", 0, 0
        for kind, start, end in _attributes(body, INTERFACE_HEADER.size, len(body)):
            if kind == _IFLA_IFNAME:
                name = body[start : end - 1].decode()
            elif kind == _IFLA_STATS64:
                counters = struct.unpack_from("=8Q", body, start)
                packets, drops = counters[0] + counters[1], sum(counters[4:8])
        return InterfaceCounters(index, name, packets, drops)


class QueuePattern:
    """Reads short dumps that are laid out like ``data`` in one go: the words that stay, and the counters."""

    def __init__(self, data: bytes) -> None:
        found = list(places_of_queues(data))
        fields = [(at, "I", 4) for places in found for at in places.fixed]
        fields += [(places.basic, "QI", 12) for places in found if places.basic is not None]
        fields += [(places.queue + 4, "II", 8) for places in found if places.queue is not None]
        layout, end, count, number = "=", 0, 0, {}
        for at, kinds, size in sorted(fields):
            layout += f"{at - end}x{kinds}"
            number[at], end, count = count, at + size, count + len(kinds)
        self._values = struct.Struct(f"{layout}{len(data) - end}x")
        fixed = [number[at] for places in found for at in places.fixed]
        self._fixed: Callable[[tuple[int, ...]], object] = itemgetter(*fixed) if fixed else tuple
        self._held = self._fixed(self._values.unpack(data))
        self._counters = [
            (
                places.interface,
                places.handle,
                None if places.basic is None else number[places.basic],
                None if places.queue is None else number[places.queue + 4],
            )
            for places in found
        ]

    def read(self, data: bytes) -> list[QueueCounters] | None:
        """The counters in ``data``, handles whole; None if it is laid out otherwise or describes other queues."""
        if len(data) != self._values.size:
            return None
        values = self._values.unpack(data)
        if self._fixed(values) != self._held:
            return None
        found = []
        for interface, handle, basic, queue in self._counters:
            size, packets = (0, 0) if basic is None else values[basic : basic + 2]
            backlog, drops = (0, 0) if queue is None else values[queue : queue + 2]
            found.append(QueueCounters(interface, handle, size, packets, backlog, drops))
        return found


@lru_cache(4096)
def _request(kind: int, interface: int, parent: int, flags: int) -> bytes:
    body = TC_MESSAGE.pack(0, 0, 0, interface, 0, parent, 0)
    return packed(kind, flags, body)


def places_of_queues(dump: bytes) -> Iterator[QueuePlaces]:
    """Every qdisc or class that ``dump`` describes."""
    offset = 0
    while offset < len(dump):
        length = HEADER.unpack_from(dump, offset)[0]
        body, end = offset + HEADER.size, offset + length
        _, _, _, interface, handle, _, _ = TC_MESSAGE.unpack_from(dump, body)
        fixed = [offset, offset + 4, body + 4, body + 8, body + 12]
        basic = queue = None
        for kind, start, stop in _attributes(dump, body + TC_MESSAGE.size, end):
            fixed.append(start - ATTRIBUTE.size)
            if kind != _TCA_STATS2:
                continue
            for inner, at, _ in _attributes(dump, start, stop):
                fixed.append(at - ATTRIBUTE.size)
                basic = at if inner == _STATS_BASIC else basic
                queue = at if inner == _STATS_QUEUE else queue
        yield QueuePlaces(interface, handle, tuple(fixed), basic, queue)
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
        if message == ERROR:
            raise OSError("netlink refused to list counters")
        offset += (length + 3) & ~3
    return None


def _setting(kind: str, body: bytes) -> Setting:
    _, _, _, _, handle, parent, _ = TC_MESSAGE.unpack_from(body)
    kept = b""
    for attribute, start, end in _attributes(body, TC_MESSAGE.size, len(body)):
        if attribute != _TCA_OPTIONS:
            continue
        for inner, at, stop in _attributes(body, start, end):
            if kind != "filter" or inner != _TCA_U32_COUNTERS:
                kept += body[at - ATTRIBUTE.size : at + (stop - at + 3 & ~3)]
    return Setting(kind, parent, handle, kept)


def _attributes(body: bytes, offset: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(type, start, end) of the value of each attribute in ``body[offset:end]``."""
    while offset + ATTRIBUTE.size <= end:
        length, kind = ATTRIBUTE.unpack_from(body, offset)
        if length < ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, offset + ATTRIBUTE.size, offset + length
        offset += (length + 3) & ~3
