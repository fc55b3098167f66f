"""Two jobs on one link under strict priority, in closed form (Crux section 4.2).

The higher job runs as if it were alone, so the link is free for the lower one at known, repeating
times. An iteration of the lower job is then one step: it starts, may send when its lead is done,
and has sent when that much free time has passed. The same result as the event by event simulation
of :mod:`controller.schedulers.crux.pair_simulation`, in a time that hardly grows with the ratio of the two periods.
"""

from __future__ import annotations

from math import ceil, floor

from workloads.periodic_job import PeriodicJob

_SLACK = 1e-9
"""Seconds below which a difference is rounding."""


def higher_sending_time(pattern: PeriodicJob[str], offset_s: float, begin_s: float, end_s: float) -> float:
    """Return the seconds that a job ``offset_s`` into its iteration at time 0 sends from ``begin_s`` to ``end_s``."""
    return _sent_alone(pattern, offset_s + end_s) - _sent_alone(pattern, offset_s + begin_s)


def _sent_alone(pattern: PeriodicJob[str], time_s: float) -> float:
    rounds = floor(time_s / pattern.period_s)
    within = time_s - rounds * pattern.period_s - pattern.lead_s
    return rounds * pattern.communication_s + min(pattern.communication_s, max(0.0, within))


def lower_sending_time(
    low: PeriodicJob[str],
    low_offset_s: float,
    high: PeriodicJob[str],
    high_offset_s: float,
    begin_s: float,
    end_s: float,
) -> float:
    """Return the seconds that ``low`` sends from ``begin_s`` to ``end_s`` below ``high``.

    The offsets are those into an iteration alone at time 0, as in ``State.at``.
    """
    return _sent_below(low, low_offset_s, high, high_offset_s, end_s) - (
        _sent_below(low, low_offset_s, high, high_offset_s, begin_s) if begin_s > 0 else 0.0
    )


def _sent_below(
    low: PeriodicJob[str], low_offset_s: float, high: PeriodicJob[str], high_offset_s: float, end_s: float
) -> float:
    """Seconds that ``low`` sends in the first ``end_s``.

    Time is counted from an end of the higher job's communication: every ``period`` begins with
    ``free`` seconds in which the link is the lower job's, then it is taken. Of any time t,
    ``floor(t / period) * free + min(t mod period, free)`` is the free time up to it.
    """
    period = high.period_s
    free = period - high.communication_s
    if free <= _SLACK:
        return 0.0
    origin = high_offset_s - high.lead_s - high.communication_s
    end, start = origin + end_s, origin - low_offset_s
    size, lead, compute, alone = low.communication_s, low.lead_s, low.compute_s, low.period_s
    sent = 0.0
    left = size - max(0.0, low_offset_s - lead)  # of the iteration under way at time 0
    ready = max(origin, start + lead)
    while True:
        if left > _SLACK:
            rounds = floor(ready / period)
            wanted = rounds * free + min(ready - rounds * period, free) + left
            rounds = ceil((wanted - _SLACK) / free) - 1
            through = rounds * period + wanted - rounds * free
            if through >= end:
                rounds = floor(end / period)
                passed = rounds * free + min(end - rounds * period, free) - (wanted - left)
                return sent + (max(0.0, passed) if ready < end else 0.0)
            sent += left
            start = max(start + compute, through)
        else:
            start += compute
        # Iterations that end before the higher job sends again run as if alone.
        within = start - floor((start + _SLACK) / period) * period
        whole = int((min(free - within, end - start) + _SLACK) // alone)
        if whole > 0:
            sent += whole * size
            start += whole * alone
        if start >= end:
            return sent
        left, ready = size, start + lead
