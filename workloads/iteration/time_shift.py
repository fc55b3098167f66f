"""When a shifted job begins its iterations: at a fixed phase of a period that several jobs share.

A time shift holds only while it is kept: iterations are a little longer or shorter than planned. An
iteration that comes a little early waits for its phase; one that comes late goes on at once, and
only after many iterations waits for the next period (CASSINI's agent adjusts when the start drifts
by more than 5 % of the period, and rarely).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DRIFT: Final = 0.05
"""Share of the period by which an iteration may begin late without being out of phase."""
EARLY: Final = 0.2
"""An iteration that is early by at most this share of the period waits: that is the slack of rounding up."""
PATIENCE: Final = 20
"""Iterations that a job goes on out of phase before it waits for most of a period."""


@dataclass(frozen=True, slots=True)
class TimeShift:
    """Phase ``anchor + shift`` of ``period``, all in seconds of the machine's clock; period 0: delay once, no more."""

    anchor: float
    shift: float
    period: float = 0.0


class PhaseKeeper:
    """Keeps the iterations of a job at ``time_shift``."""

    def __init__(self, time_shift: TimeShift) -> None:
        self.time_shift = time_shift
        self._out_of_phase = PATIENCE

    def wait(self, now: float) -> float:
        """Return how many seconds the iteration that could begin ``now`` waits."""
        first, period = self.time_shift.anchor + self.time_shift.shift, self.time_shift.period
        if now < first:
            self._out_of_phase = 0
            return first - now
        if period <= 0.0:
            return 0.0
        late = (now - first) % period
        if late <= DRIFT * period:
            self._out_of_phase = 0
            return 0.0
        if period - late <= EARLY * period or self._out_of_phase >= PATIENCE:
            self._out_of_phase = 0
            return period - late
        self._out_of_phase += 1
        return 0.0
