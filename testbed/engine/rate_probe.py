"""Measures the rate that busy links really reach.

A link counts as busy over an interval only if enough waited in its queue at the beginning to keep
it sending to the end; then the bytes it sent say its rate. A few links at a time are watched
closely, those with most in their queues, and those least watched so far first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from testbed.engine.netlink import CounterSocket

WATCHED_LINKS: Final = 8
PACKETS_PER_INTERVAL: Final = 3
MIN_INTERVAL_S: Final = 0.005


@dataclass
class ProbedLink:
    """A link's interface, the rate in bit/s it is set to, and what was seen while it was busy."""

    socket: CounterSocket
    interface: int
    wire_rate: float
    busy_s: float = 0.0
    sent: int = 0
    last: tuple[float, int, int] | None = field(default=None, repr=False)

    @property
    def reached(self) -> float:
        """Reached / set rate over all busy intervals."""
        return self.sent * 8 / self.busy_s / self.wire_rate if self.busy_s else 0.0


class RateProbe:
    """Watches the links named by :meth:`focus`; call :meth:`poll` every :attr:`interval_s`."""

    def __init__(self, links: Mapping[str, ProbedLink], mtu: int) -> None:
        self._links = links
        self._watched: list[ProbedLink] = []
        fastest = max((link.wire_rate for link in links.values()), default=1e9)
        self.interval_s = max(MIN_INTERVAL_S, PACKETS_PER_INTERVAL * 8 * mtu / fastest)

    def focus(self, backlog: Mapping[str, int]) -> None:
        """Watch the links with the longest queues (link -> bytes), the least watched of them first."""
        waiting = sorted((name for name, size in backlog.items() if size), key=lambda name: -backlog[name])
        candidates = [self._links[name] for name in waiting[: 3 * WATCHED_LINKS]]
        self._watched = sorted(candidates, key=lambda link: link.busy_s)[:WATCHED_LINKS]
        for link in self._links.values():
            link.last = None

    def poll(self) -> None:
        """Read the counters of the watched links."""
        for link in self._watched:
            counters = link.socket.root_queue(link.interface)
            now = time.monotonic()
            if link.last is not None:
                then, sent, waiting = link.last
                if waiting * 8 >= (now - then) * link.wire_rate:
                    link.busy_s += now - then
                    link.sent += counters.bytes - sent
            link.last = (now, counters.bytes, counters.backlog)

    def results(self) -> dict[str, tuple[float, float]]:
        """Link -> (seconds seen busy, reached / set rate)."""
        return {name: (link.busy_s, link.reached) for name, link in self._links.items() if link.busy_s > 0}
