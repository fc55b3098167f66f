"""How often something costly is done, so that it takes no more than a share of a core. Pure."""

from __future__ import annotations

from typing import Final

GRACE_S: Final = 0.1
"""What is due this soon is done at once: seconds are not met exactly."""


class Pace:
    """``share`` is how much of a core may be spent; what costs less than its share is always due.

    One time that took longer than the one before does not count: only what is costly again and again is done less.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._due = float("-inf")
        self._last = 0.0

    def is_due(self, now: float) -> bool:
        """Whether it may be done again."""
        return now + GRACE_S >= self._due

    def spent(self, now: float, cpu_s: float) -> None:
        """It was done at ``now`` and took ``cpu_s`` of CPU time."""
        self._due = now + min(cpu_s, self._last) / self._share
        self._last = cpu_s
