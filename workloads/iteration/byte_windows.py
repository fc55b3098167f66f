"""Windows that follow a count of an iteration's bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ByteWindows:
    """Bytes in flight by how much of ``period`` has arrived: one of ``windows`` for each of as many equal parts.

    A receiver cannot take back what it has allowed (RFC 9293, 3.8.6). So it allows no more than the rest of a period
    and the first window of the next: otherwise each period would begin with the last window of the one before.
    """

    period: int
    windows: tuple[int, ...]

    def at(self, received: int) -> int:
        """Return the window when ``received`` bytes have arrived since the connection was opened."""
        done = received % self.period
        return min(self.windows[done * len(self.windows) // self.period], self.period - done + self.windows[0])
