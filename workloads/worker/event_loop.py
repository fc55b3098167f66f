"""A small event loop: sockets, timers and lines of JSON from the engine; one thread, no allocation in idle."""

from __future__ import annotations

import heapq
import itertools
import os
import select
import time
from collections.abc import Callable

_SHORT_S = 0.0012
"""Below this a timer is waited for by ``select``, on ``epoll`` itself: that counts only whole milliseconds."""
_MOST_EVENTS = 64
"""Descriptors served in a turn; the others are ready in the next."""


class Loop:
    """Calls handlers when descriptors are ready and when timers are due; ends when :attr:`running` is False."""

    def __init__(self) -> None:
        self.running = True
        self._epoll = select.epoll()
        self._readable = [self._epoll.fileno()]
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()

    @staticmethod
    def clock() -> float:
        """Seconds of the machine's monotonic clock, the same in every process and namespace."""
        return time.monotonic()

    def watch(self, descriptor: int, events: int, handler: Callable[[int], None]) -> None:
        """Call ``handler(events)`` whenever ``descriptor`` is ready for ``events``."""
        if descriptor in self._handlers:
            self._epoll.modify(descriptor, events)
        else:
            self._epoll.register(descriptor, events)
        self._handlers[descriptor] = handler

    def forget(self, descriptor: int) -> None:
        """Stop watching ``descriptor``."""
        if self._handlers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def at(self, when: float, handler: Callable[[float], None]) -> None:
        """Call ``handler(lateness in seconds)`` at ``when``, or at once if that is past."""
        heapq.heappush(self._timers, (when, next(self._order), handler))

    def run(self) -> None:
        """Run until :attr:`running` is False."""
        poll, handlers, timers, clock = self._epoll.poll, self._handlers, self._timers, time.monotonic
        wait = 0.0
        while self.running:
            for descriptor, events in poll(wait, _MOST_EVENTS):
                handler = handlers.get(descriptor)
                if handler is not None:
                    handler(events)
                    # In a burst each of these may forward packets of all hosts for milliseconds.
                    if timers and timers[0][0] <= clock():
                        self._fire(clock())
            if not timers:
                wait = -1.0
                continue
            now = clock()
            if timers[0][0] <= now:
                now = self._fire(now)
            wait = self._wait(now)

    def _wait(self, now: float) -> float:
        """Seconds for ``epoll`` to wait for events; short remainders are waited for here, or until the first event."""
        if not self._timers:
            return -1.0
        remaining = self._timers[0][0] - now
        if remaining >= _SHORT_S:
            return remaining - 0.001
        if remaining > 0.0 and self.running:
            select.select(self._readable, (), (), remaining)
        return 0.0

    def _fire(self, due: float) -> float:
        """Call the handlers of timers that are due by ``due``; return the time afterwards.

        Timers that become due meanwhile wait for the next turn, or they might keep sockets waiting for ever.
        """
        now, ready = due, []
        while self._timers and self._timers[0][0] <= due:
            ready.append(heapq.heappop(self._timers))
        for when, _, handler in ready:
            handler(now - when)
            now = self.clock()
        return now


class LineReader:
    """Splits what arrives on a descriptor into lines."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def read(self) -> list[bytes] | None:
        """The whole lines that have arrived; None at the end of the stream."""
        data = os.read(self._descriptor, 1 << 16)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines
