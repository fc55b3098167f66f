"""Measures the rate that busy links really reach.

A link is busy from one look to the next if enough waited in its queue at the first to keep it
sending until the second; the looks are a few packet times apart. What it sent over a stretch of
such looks says its rate, to within one packet; so only long stretches count. A stretch is counted
from the first to the last look that found something gone: a host's queue sends what TCP gave it at
once, up to four packets, and makes up for it by the time it waits afterwards. A few links at a time
are watched closely: those with most in their queues, and of those the least watched so far.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from testbed.engines.emulation.probes.netlink import CounterSocket

WATCHED_LINKS: Final = 8
PACKETS_PER_LOOK: Final = 2
MIN_INTERVAL_S: Final = 0.005
MIN_STRETCH_PACKETS: Final = 20
GRAIN: Final = 2.0
"""Packets: five standard deviations of the count at the two ends of a stretch."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """From ``begin`` to ``end`` on the machine's clock a link was busy all the time and sent ``sent`` bytes."""

    begin: float
    end: float
    sent: int


@dataclass
class ProbedLink:
    """A link's interface, the rate in bit/s it is set to, and what was seen while it was busy.

    Of the stretch under way, as (time, bytes sent): ``begin`` and ``gone``, the first and the last look that found
    packets gone, and ``last``, the last of all; ``waiting`` are the bytes in the queue then.
    """

    socket: CounterSocket
    interface: int
    wire_rate: float
    busy_s: float = 0.0
    stretches: list[Stretch] = field(default_factory=list, repr=False)
    begin: tuple[float, int] | None = field(default=None, repr=False)
    gone: tuple[float, int] = field(default=(0.0, 0), repr=False)
    last: tuple[float, int] | None = field(default=None, repr=False)
    waiting: int = field(default=0, repr=False)

    def reached(self, stretches: Sequence[Stretch], packet: int) -> tuple[float, float, float]:
        """(seconds, reached / set rate, how far off that may be by the grain of packets) over ``stretches``."""
        busy_s, sent = sum(s.end - s.begin for s in stretches), sum(s.sent for s in stretches)
        return busy_s, sent * 8 / busy_s / self.wire_rate, GRAIN * len(stretches) ** 0.5 * packet / sent

    def look(self, now: float, sent: int, waiting: int, packet: int) -> None:
        """Take note of the counters at ``now``: bytes sent so far and waiting; ``packet`` is a full one's size."""
        if self.last is not None and self.waiting * 8 < (now - self.last[0]) * self.wire_rate:
            self.end_stretch(packet)
        if waiting < PACKETS_PER_LOOK * packet:
            self.end_stretch(packet)
            return
        if self.last is not None and sent > self.last[1]:
            self.begin, self.gone = self.begin or (now, sent), (now, sent)
        self.last, self.waiting = (now, sent), waiting

    def end_stretch(self, packet: int) -> None:
        """Count the stretch under way if it was long enough."""
        if self.begin is not None and self.gone[1] - self.begin[1] >= MIN_STRETCH_PACKETS * packet:
            self.busy_s += self.gone[0] - self.begin[0]
            self.stretches.append(Stretch(self.begin[0], self.gone[0], self.gone[1] - self.begin[1]))
        self.forget()

    def forget(self) -> None:
        """Drop the stretch under way."""
        self.begin = self.last = None


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
        waiting = sorted(
            (name for name, size in backlog.items() if size and name in self._links), key=lambda name: -backlog[name]
        )
        candidates = [self._links[name] for name in waiting[: 3 * WATCHED_LINKS]]
        chosen = sorted(candidates, key=lambda link: link.busy_s)[:WATCHED_LINKS]
        for link in self._watched:
            if link not in chosen:
                link.end_stretch(self._packet)
        self._watched = chosen

    def poll(self) -> None:
        """Read the counters of the watched links."""
        for link in self._watched:
            try:
                counters = link.socket.data_queue(link.interface)
            except OSError:  # another process removed the queue: that is found when settings are read back
                link.forget()
                continue
            link.look(time.monotonic(), counters.bytes, counters.backlog, self._packet)

    def share(self, link: str, stretch: Stretch) -> float:
        """Reached / set rate in one stretch of ``link``."""
        return stretch.sent * 8 / (stretch.end - stretch.begin) / self._links[link].wire_rate

    def packets_in(self, seconds: float) -> int:
        """Full packets that the fastest link sends in this time."""
        fastest = max((link.wire_rate for link in self._links.values()), default=0.0)
        return round(seconds * fastest / 8 / self._packet)

    def results(
        self, begin: float = 0.0, without: Sequence[tuple[float, float]] = ()
    ) -> dict[str, tuple[float, float, float]]:
        """Link -> (seconds seen busy, reached / set rate, how far off that may be by the grain of packets).

        Of stretches after ``begin`` on the machine's clock that none of the spans ``without`` touches.
        """
        return {
            name: self._links[name].reached(stretches, self._packet)
            for name, stretches in self.stretches(begin, without).items()
        }

    def stretches(self, begin: float = 0.0, without: Sequence[tuple[float, float]] = ()) -> dict[str, list[Stretch]]:
        """Link -> its busy stretches, of links that have any; those under way end here."""
        for link in self._watched:
            link.end_stretch(self._packet)
        found = {
            name: [
                s for s in link.stretches if s.begin >= begin and not any(a < s.end and s.begin < b for a, b in without)
            ]
            for name, link in self._links.items()
        }
        return {name: stretches for name, stretches in found.items() if stretches}
