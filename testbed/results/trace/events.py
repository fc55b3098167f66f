"""Chrome trace events, and the order of the names in them.

The format: "Trace Event Format", https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Final

Event = dict[str, Any]
CONTROLLER: Final = 0
"""The process that stands for the controller; hosts follow, from 1."""
_GPU_NAME: Final = re.compile(r"^(?P<host>.*?)g(?P<index>[0-9]{1,9})$", re.DOTALL)


@dataclass(frozen=True)
class Processes:
    """The numbers of the processes of a timeline: one per host, and one for the ``network``."""

    hosts: Mapping[str, int]

    @property
    def network(self) -> int:
        """The process of the links' counters."""
        return len(self.hosts) + 1


def host_and_index(gpu: str) -> tuple[str, int]:
    """``h3g5`` -> ``("h3", 5)``; a name of another form is a host of its own."""
    match = _GPU_NAME.match(gpu)
    return (match["host"], int(match["index"])) if match else (gpu, 0)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that puts ``h10g0`` after ``h2g0``; digits are compared as text, however many there are."""
    return tuple(_part(part) for part in re.findall(r"[0-9]+|[^0-9]+", name))


def _part(part: str) -> tuple[int, int, str]:
    if part[0] not in "0123456789":
        return (1, 0, part)
    digits = part.lstrip("0")
    return (0, len(digits), digits)


def micro(seconds: float) -> float:
    """Seconds as the microseconds of the format."""
    return round(seconds * 1e6, 3)


def named(kind: str, name: str, process: int, thread: int = 0) -> Event:
    """Give a process or a thread (``kind``: ``process_name``, ``thread_name``) its name."""
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


class Room:
    """Room for a number of events; what comes later than the first that does not fit is left out, and noted."""

    def __init__(self, events: int) -> None:
        self._left = events
        self.from_s: float | None = None
        """Since when (s) events are left out; None if none is."""

    def take(self, time_s: float, events: Iterable[Event]) -> Iterator[Event]:
        """Give out ``events`` of ``time_s``, all or none."""
        if self.from_s is not None:
            return
        batch = list(islice(events, self._left + 1))
        if len(batch) > self._left:
            self.from_s = time_s
            return
        self._left -= len(batch)
        yield from batch


def numbers() -> Iterator[int]:
    """Identities of arrows, from 1."""
    return count(1)
