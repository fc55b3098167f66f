"""Two jobs on one link under strict priority, simulated event by event (Crux section 4.2).

Each job repeats: compute, communication that may start once a lead of that compute is done, and
the next iteration when both are done. The higher job's communication takes the whole link. The
lower one's gets the rest of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from workloads.periodic_job import SLACK_S, PeriodicJob

_INFINITY = float("inf")


@dataclass(slots=True)
class State:
    """A job's progress in its iteration: seconds left of compute, of the lead in it, of communication.

    ``sent_s`` and ``computed_s`` add up while time is counted; what is left of that time its GPUs are idle.
    """

    pattern: PeriodicJob[str]
    compute_left: float
    lead_left: float
    communication_left: float
    sent_s: float = 0.0
    computed_s: float = 0.0

    @classmethod
    def at(cls, pattern: PeriodicJob[str], offset_s: float) -> State:
        """The state ``offset_s`` seconds into an iteration that runs alone (0 <= offset_s < period)."""
        return cls(
            pattern,
            compute_left=max(0.0, pattern.compute_s - offset_s),
            lead_left=max(0.0, pattern.lead_s - offset_s),
            communication_left=pattern.communication_s - max(0.0, offset_s - pattern.lead_s),
        )

    @property
    def wants_link(self) -> bool:
        """Whether communication is allowed and not done."""
        return self.lead_left <= 0 < self.communication_left

    def next_event(self, sending: bool) -> float:
        """Seconds until something about this job changes."""
        waits = [left for left in (self.compute_left, self.lead_left) if left > 0]
        if sending:
            waits.append(self.communication_left)
        return min(waits, default=_INFINITY)

    def advance(self, seconds: float, sending: bool, counted: bool) -> None:
        """Let ``seconds`` pass; ``sending`` says whether the job has the link, ``counted`` whether to book it."""
        if counted:
            self.computed_s += min(seconds, self.compute_left)
        self.compute_left = _less(self.compute_left, seconds)
        self.lead_left = _less(self.lead_left, seconds)
        if sending:
            self.communication_left = _less(self.communication_left, seconds)
            if counted:
                self.sent_s += seconds
        if self.compute_left <= 0 and self.communication_left <= 0:
            self.compute_left = self.pattern.compute_s
            self.lead_left = self.pattern.lead_s
            self.communication_left = self.pattern.communication_s


def _less(left: float, seconds: float) -> float:
    rest = left - seconds
    return rest if rest > SLACK_S else 0.0


def sending_times(high: State, low: State, duration_s: float, warmup_s: float = 0.0) -> tuple[float, float]:
    """Return the seconds that ``high`` and ``low`` spend sending in ``duration_s`` after ``warmup_s``.

    Both states are advanced to the end.
    """
    for length, counted in ((warmup_s, False), (duration_s, True)):
        left = length
        while left > SLACK_S:
            high_sends = high.wants_link
            low_sends = low.wants_link and not high_sends
            step = min(left, high.next_event(high_sends), low.next_event(low_sends))
            high.advance(step, high_sends, counted)
            low.advance(step, low_sends, counted)
            left -= step
    return high.sent_s, low.sent_s
