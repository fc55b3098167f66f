"""The evidence behind a verdict as the page shows it: each value with its threshold and unit, and the same over time.

Times are undilated seconds of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from testbed.fidelity.interference import MAX_RUN_DELAY, MAX_STANDSTILL_S, MAX_STOLEN, MIN_IDLE_CPU
from testbed.fidelity.verdict import MAX_LINK_RATE_ERROR, MAX_LOWER_LEVEL, MAX_TIMER_LATENESS_S, MIN_BUSY_S, rate_error
from testbed.results.record import RunRecord

Item = tuple[str, str, float, str, float | None, str]
ITEMS: Final[tuple[Item, ...]] = (
    (
        "min_idle_cpu",
        "idle CPU, lowest second",
        100.0,
        "%",
        100 * MIN_IDLE_CPU,
        "Below this, packets and timers are no longer served in time. Seconds that other processes or guests took "
        "are not counted: the iterations they touch are left out.",
    ),
    (
        "stolen_cpu",
        "CPU taken by other guests, mean",
        100.0,
        "%",
        100 * MAX_STOLEN,
        "Above this in a second, iterations become longer; they are left out.",
    ),
    (
        "max_run_delay",
        "waiting for a CPU, longest share of a second",
        100.0,
        "%",
        100 * MAX_RUN_DELAY,
        "A process that is ready but waits this long serves its packets late.",
    ),
    (
        "max_timer_lateness_s",
        "compute pause ended late, at most",
        1e3,
        "ms",
        1e3 * MAX_TIMER_LATENESS_S,
        "Iterations with a later pause are left out; many of them, or a standstill of "
        f"{1e3 * MAX_STANDSTILL_S:.0f} ms, degrade the run.",
    ),
    (
        "link_rate_error",
        "rate error of a busy link, largest",
        100.0,
        "%",
        100 * MAX_LINK_RATE_ERROR,
        "How far a busy link was from the rate it was set to, beyond what the size of packets explains.",
    ),
    (
        "lower_level_share",
        "sent by lower levels while a higher one waited",
        100.0,
        "%",
        100 * MAX_LOWER_LEVEL,
        "Strict priority gives lower levels nothing while a higher one waits.",
    ),
    (
        "unintended_drops",
        "packets dropped",
        1.0,
        "packets",
        0.0,
        "The emulated fabric is lossless; drops on a cable that the scenario fails are expected.",
    ),
    (
        "retransmits",
        "segments sent again",
        1.0,
        "segments",
        0.0,
        "In a lossless fabric nothing is sent again; after a failed cable it is expected.",
    ),
)
"""Key of the fidelity, name, factor to the unit, unit, threshold in that unit, meaning."""
MAX_POINTS: Final = 4000


def evidence_items() -> list[dict[str, Any]]:
    """JSON-ready, in the order they are shown; ``at_least``: the threshold is a minimum."""
    return [
        {
            "key": key,
            "name": name,
            "factor": factor,
            "unit": unit,
            "threshold": threshold,
            "at_least": key == "min_idle_cpu",
            "meaning": meaning,
        }
        for key, name, factor, unit, threshold, meaning in ITEMS
    ]


def evidence_over_time(record: RunRecord, dilation: float) -> dict[str, Any] | None:
    """JSON-ready: CPU, waiting and lateness over time, and the judged rate error by link; None if the run left none."""
    left: Mapping[str, Any] = record.environment
    cpu: Sequence[Sequence[float]] = left.get("cpu") or ()
    if not cpu:
        return None
    delay = left.get("run_delay") or ()
    timers = _thinned(left.get("timers") or ())
    return {
        "cpu": {
            "time": [_time(row[0], dilation) for row in cpu],
            **{
                name: [_percent(row[place]) for row in cpu]
                for place, name in ((2, "idle"), (3, "stolen"), (4, "other"))
            },
            "pressure": [_percent(row[5]) if len(row) > 5 else None for row in cpu],
        },
        "waiting": {
            "time": [_time(row[0], dilation) for row in delay],
            **{
                name: [_percent(row[place]) for row in delay]
                for place, name in enumerate(("switches", "controller", "worker", "quota"), start=1)
            },
        },
        "timers": [[_time(when, dilation), round(1e3 * late, 3)] for when, late, *_ in timers],
        "standstills": [
            [_time(end, dilation), round(1e3 * (end - begin), 1), what]
            for what, begin, end, *_ in left.get("standstills") or ()
        ],
        "rates": rate_errors(left.get("link_rates") or {}),
        "min_busy_s": MIN_BUSY_S,
    }


def rate_errors(link_rates: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """A row per link seen busy: ``busy_s``, and in percent the ``raw`` error, the ``grain`` and the judged ``error``.

    The error has the sign of the raw one. Links seen busy for too short a time are not ``judged``.
    """
    return [
        {
            "link": link,
            "busy_s": busy_s,
            "raw": round(100 * (reached - 1), 3),
            "grain": round(100 * grain, 3),
            "error": round(100 * rate_error(reached, grain) * (1 if reached >= 1 else -1), 3),
            "judged": busy_s >= MIN_BUSY_S,
        }
        for link, (busy_s, reached, grain, *_) in sorted(link_rates.items())
    ]


def _time(seconds: float, dilation: float) -> float:
    return round(seconds / dilation, 3)


def _percent(share: float) -> float:
    return round(100 * share, 2)


def _thinned(timers: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    """At most ``MAX_POINTS`` timers: the latest ones."""
    if len(timers) <= MAX_POINTS:
        return timers
    latest = sorted(timers, key=lambda row: -row[1])[:MAX_POINTS]
    return sorted(latest, key=lambda row: row[0])
