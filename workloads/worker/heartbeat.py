"""A timer that only checks whether the worker is served in time: events that no job waits for can be late unnoticed."""

from __future__ import annotations

from typing import Final

from workloads.iteration.protocol import Late, Tell
from workloads.worker.event_loop import Loop

PERIOD_S: Final = 0.1
"""Ten wake-ups a second cost a tenth of a percent of a core, and a standstill of 0.2 s spans at least one."""
WORTH_TELLING_S: Final = 0.05
"""Shorter delays are reported by the compute timers that they hit."""


class Heartbeat:
    """Fires every :data:`PERIOD_S`; sends :class:`Late` with start and end of the time it was not served."""

    def __init__(self, loop: Loop, tell: Tell) -> None:
        self._loop = loop
        self._tell = tell
        loop.at(loop.clock() + PERIOD_S, self._beat)

    def _beat(self, lateness: float) -> None:
        now = self._loop.clock()
        if lateness > WORTH_TELLING_S:
            self._tell(Late(now - lateness, now))
        self._loop.at(now + PERIOD_S, self._beat)
