"""Measures the rate that busy links really reach.

A link is busy from one look to the next if enough waited in its queue at the first to keep it
sending until the second; the looks are a few packet times apart. What it sent over a stretch of
such looks says its rate, to within one packet; so only long stretches count. A few links at a time
are watched closely: those with most in their queues, and of those the least watched so far.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from testbed.engine.netlink import CounterSocket

WATCHED_LINKS: Final = 8
PACKETS_PER_LOOK: Final = 2
MIN_INTERVAL_S: Final = 0.005
MIN_STRETCH_PACKETS: Final = 20
GRAIN: Final = 2.0
"""Packets: five standard deviations of the count at the two ends of a stretch."""


@dataclass
class ProbedLink:
    """A link's interface, the rate in bit/s it is set to, and what was seen while it was busy.

    ``begin`` and ``last`` are (time, bytes sent) at the ends of the stretch under way; ``waiting`` are
    the bytes in the queue at its end.
    """

    socket: CounterSocket
    interface: int
    wire_rate: float
    busy_s: float = 0.0
    sent: int = 0
    stretches: int = 0
    begin: tuple[float, int] | None = field(default=None, repr=False)
    last: tuple[float, int] = field(default=(0.0, 0), repr=False)
    waiting: int = field(default=0, repr=False)

    @property
    def reached(self) -> float:
        """Reached / set rate over all busy stretches."""
        return self.sent * 8 / self.busy_s / self.wire_rate if self.busy_s else 0.0

    def look(self, now: float, sent: int, waiting: int, packet: int) -> None:
        """Take note of the counters at ``now``: bytes sent so far and waiting; ``packet`` is a full one's size."""
        if self.begin is not None and self.waiting * 8 < (now - self.last[0]) * self.wire_rate:
            self.end_stretch(packet)
        if waiting < PACKETS_PER_LOOK * packet:
            self.end_stretch(packet)
            return
        if self.begin is None:
            self.begin = (now, sent)
        self.last, self.waiting = (now, sent), waiting

    def end_stretch(self, packet: int) -> None:
        """Count the stretch under way if it was long enough."""
        if self.begin is not None and self.last[1] - self.begin[1] >= MIN_STRETCH_PACKETS * packet:
            self.busy_s += self.last[0] - self.begin[0]
            self.sent += self.last[1] - self.begin[1]
            self.stretches += 1
        self.begin = None


class RateProbe:
    """Watches the links named by :meth:`focus`; call :meth:`poll` every :attr:`interval_s`."""

    def __init__(self, links: Mapping[str, ProbedLink], mtu: int) -> None:
        self._links = links
        self._packet = mtu
        self._watched: list[ProbedLink] = []
        fastest = max((link.wire_rate for link in links.values()), default=1e9)
        self.interval_s = max(MIN_INTERVAL_S, PACKETS_PER_LOOK * 8 * mtu / fastest)

    def focus(self, backlog: Mapping[str, int]) -> None:
        """Watch the links with the longest queues (link -> bytes), the least watched of them first."""
        waiting = sorted((name for name, size in backlog.items() if size), key=lambda name: -backlog[name])
        candidates = [self._links[name] for name in waiting[: 3 * WATCHED_LINKS]]
        chosen = sorted(candidates, key=lambda link: link.busy_s)[:WATCHED_LINKS]
        for link in self._watched:
            if link not in chosen:
                link.end_stretch(self._packet)
        self._watched = chosen

    def poll(self) -> None:
        """Read the counters of the watched links."""
        for link in self._watched:
            counters = link.socket.root_queue(link.interface)
            link.look(time.monotonic(), counters.bytes, counters.backlog, self._packet)

    def results(self) -> dict[str, tuple[float, float, float]]:
        """Link -> (seconds seen busy, reached / set rate, how far off that may be by the grain of packets)."""
        for link in self._watched:
            link.end_stretch(self._packet)
        return {
            name: (link.busy_s, link.reached, GRAIN * link.stretches**0.5 * self._packet / link.sent)
            for name, link in self._links.items()
            if link.stretches
        }
