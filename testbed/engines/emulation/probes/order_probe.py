"""Watches whether links keep the order of their levels: what is sent while a higher level provably waits.

At one look a level has so much in its queue that the link cannot have sent it all by the next look, not
even with its bucket full: then it waited all the time in between, and no byte of a lower level should have
gone. A few links at a time are watched closely, among those that carry several levels.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from testbed.engines.emulation.probes.netlink import CounterSocket
from testbed.fidelity.observations import Order

WATCHED_LINKS: Final = 2
BUCKETS: Final = 1
"""Buckets of the shaper that a link may send beyond its rate between two looks."""

Levels = Mapping[int, tuple[int, int]]
"""Level -> (bytes sent so far, bytes that wait)."""


@dataclass
class OrderedLink:
    """A link's interface, its classes (handle -> level), rate in bit/s and bucket in bytes; then what was seen.

    ``lower`` holds bytes by (level that waited, level that was sent).
    """

    socket: CounterSocket
    interface: int
    levels: Mapping[int, int]
    wire_rate: float
    burst: int
    waited_s: float = 0.0
    from_s: float = 0.0
    to_s: float = 0.0
    lower: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    before: tuple[float, Levels] | None = field(default=None, repr=False)

    def look(self, begun: float, ended: float, seen: Levels) -> None:
        """Take note of the classes as read between the moments ``begun`` and ``ended``."""
        if self.before is not None:
            self._compare(*self.before, ended, seen)
        self.before = (begun, seen)

    def _compare(self, begun: float, before: Levels, ended: float, seen: Levels) -> None:
        could_send = (ended - begun) * self.wire_rate / 8 + BUCKETS * self.burst
        waiting = [level for level, (_, backlog) in before.items() if backlog > could_send]
        if not waiting:
            return
        highest = min(waiting)
        below = [level for level in seen if level > highest and level in before]
        if not below:
            return
        self.waited_s += ended - begun
        for level in below:
            moved = seen[level][0] - before[level][0]
            if moved > 0:
                self.lower[highest, level] += moved
                self.from_s = self.from_s or begun
                self.to_s = ended

    def order(self, packet: int, origin: float) -> Order | None:
        """What was seen, ``packet`` bytes being a full one; None if no level was seen waiting."""
        if not self.waited_s:
            return None
        higher, lower = max(self.lower, key=lambda pair: self.lower[pair], default=(0, 0))
        begin, end = (self.from_s - origin, self.to_s - origin) if self.lower else (0.0, 0.0)
        capacity = self.waited_s * self.wire_rate / 8
        return Order(self.waited_s, higher, lower, sum(self.lower.values()), capacity, packet, begin, end)


class OrderProbe:
    """Watches the links named by :meth:`focus`; call :meth:`poll` as often as the rate probe."""

    def __init__(self, links: Mapping[str, OrderedLink], packet: int) -> None:
        self._links = links
        self._packet = packet
        self._watched: list[OrderedLink] = []

    def focus(self, sent: Mapping[str, Mapping[int, int]]) -> None:
        """Watch, of the links that sent at several levels (link -> level -> bytes), those least watched so far."""
        mixed = [name for name, levels in sent.items() if len(levels) > 1 and name in self._links]
        busiest = sorted(mixed, key=lambda name: (-sum(sent[name].values()), name))[: 4 * WATCHED_LINKS]
        chosen = sorted((self._links[name] for name in busiest), key=lambda link: link.waited_s)[:WATCHED_LINKS]
        for link in self._watched:
            if link not in chosen:
                link.before = None
        self._watched = chosen

    def poll(self) -> None:
        """Read the classes of the watched links."""
        for link in self._watched:
            begun = time.monotonic()
            classes = link.socket.classes(link.interface)
            seen = {link.levels[c.handle]: (c.bytes, c.backlog) for c in classes if c.handle in link.levels}
            if not seen:  # another process removed the classes: that is found when settings are read back
                link.before = None
                continue
            link.look(begun, time.monotonic(), seen)

    def results(self, origin: float) -> dict[str, Order]:
        """Link -> what it sent while a higher level waited; times count from ``origin``."""
        found = {name: link.order(self._packet, origin) for name, link in self._links.items()}
        return {name: order for name, order in found.items() if order is not None}
