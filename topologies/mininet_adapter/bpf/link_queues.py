"""What waits at every level of every link, exactly: counted by programs in the kernel at both ends of a cable.

Both ends of a cable have interface numbers that differ in the lowest bit, counted from :data:`FIRST` in the whole run,
whichever namespaces they are in.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from topologies.mininet_adapter.bpf.libbpf import EGRESS, INGRESS, BpfObject, attach
from topologies.shaping import DEFAULT_LEVELS

FIRST: Final = 1024
OBJECTS: Final = Path(__file__).parent / "objects"
_QUEUE: Final = struct.Struct("=7Q")
_THRESHOLD: Final = struct.Struct("=2I")
_LONGEST_AT: Final = 16
_TWO: Final = struct.Struct("=2Q")


class Queue(NamedTuple):
    """A level of a link: what waits, the most since it was read last, and packets that came, were marked, dropped."""

    bytes: int
    packets: int
    longest_bytes: int
    longest_packets: int
    entered: int
    marked: int
    dropped: int


class LinkQueues:
    """Counts what waits at the interfaces ``numbers``: link -> number of the interface that sends on it."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._longest: dict[tuple[str, int], int] = {}
        count = max(numbers.values(), default=FIRST) - FIRST + 2
        made = BpfObject(OBJECTS / "queues.bpf.o")
        made.make_shared("queues", count * DEFAULT_LEVELS)
        made.make_shared("thresholds", count)
        made.set_constant(struct.pack("=I", FIRST))
        made.load()
        self._object = made
        self._queues = made.shared("queues", count * DEFAULT_LEVELS * _QUEUE.size)
        self._thresholds = made.shared("thresholds", count * _THRESHOLD.size)

    def watch(self, number: int) -> None:
        """Count at the interface ``number`` of the current namespace."""
        attach(number, EGRESS, self._object.descriptor("enters"))
        attach(number, INGRESS, self._object.descriptor("leaves"))

    def set_thresholds(self, link: str, mark: int | None, drop: int | None) -> None:
        """Mark, or drop, packets that come when so many wait at their level of ``link``; None: never."""
        place = (self._numbers[link] - FIRST) * _THRESHOLD.size
        _THRESHOLD.pack_into(self._thresholds, place, mark or 0, drop or 0)

    def threshold(self, link: str) -> tuple[int, int]:
        """What the programs go by: packets at which ``link`` marks and drops; 0 for never."""
        mark, drop = _THRESHOLD.unpack_from(self._thresholds, (self._numbers[link] - FIRST) * _THRESHOLD.size)
        return int(mark), int(drop)

    def read(self, link: str, level: int) -> Queue:
        """Return what is known of a level of ``link``; the longest since the last call."""
        place = ((self._numbers[link] - FIRST) * DEFAULT_LEVELS + level) * _QUEUE.size
        found = Queue(*_QUEUE.unpack_from(self._queues, place))
        self._longest[link, level] = max(found.longest_packets, self._longest.get((link, level), 0))
        _TWO.pack_into(self._queues, place + _LONGEST_AT, max(0, _signed(found.bytes)), max(0, _signed(found.packets)))
        return found._replace(bytes=max(0, _signed(found.bytes)), packets=max(0, _signed(found.packets)))

    def all(self) -> Iterator[tuple[str, int, Queue]]:
        """Every level of every link that a packet has come to, with the longest of all times; nothing is reset."""
        for link, number in self._numbers.items():
            for level in range(DEFAULT_LEVELS):
                place = ((number - FIRST) * DEFAULT_LEVELS + level) * _QUEUE.size
                found = Queue(*_QUEUE.unpack_from(self._queues, place))
                if found.entered or found.dropped:
                    longest = max(found.longest_packets, self._longest.get((link, level), 0))
                    yield link, level, found._replace(longest_packets=longest)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
