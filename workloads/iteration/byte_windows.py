"""Windows that follow a count of an iteration's bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ByteWindows:
    """Bytes in flight by how much of ``period`` has arrived: one of ``windows`` for each of as many equal parts."""

    period: int
    windows: tuple[int, ...]

    def at(self, received: int) -> int:
        """Return the window when ``received`` bytes have arrived since the connection was opened."""
        return self.windows[received % self.period * len(self.windows) // self.period]
