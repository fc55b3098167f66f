"""The fidelity verdict: evidence in, ``ok``, ``degraded`` or ``invalid`` out. Pure.

Thresholds and their reasons stand here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from testbed.record import Fidelity, Verdict

MIN_IDLE_CPU: Final = 0.35
"""Mininet-HiFi's rule: below this share of idle CPU in a second, packets and timers are no longer served in time."""

MAX_TIMER_LATENESS_S: Final = 0.020
"""Seconds of the machine's clock: a compute pause that ends this late moves an iteration of one second by 2 %.

The iterations that a late pause touches are disturbed: listed, replaced by others, not counted."""

MAX_LATE_SHARE: Final = 0.02
"""More than one iteration, and more than this share, with a late pause: the run's own overload, no passing hitch."""

MAX_STANDSTILL_S: Final = 0.1
"""Five times the lateness allowed: a process stood still, and even its listed iterations do not say what that did."""

MAX_LINK_RATE_ERROR: Final = 0.02
"""A busy link that reaches less, or more, than its set rate by this share is not the link of the scenario."""

MIN_BUSY_S: Final = 2.0
"""A link's rate is judged once it was seen busy this long, in seconds of the machine's clock."""

INVALID_SHARE: Final = 0.2
"""More than this share of seconds without idle CPU: the run as a whole shows the machine, not the fabric."""


@dataclass(frozen=True, slots=True)
class Second:
    """One sampling interval of CPU time; shares of all cores. ``time_s`` is its end, on the run's clock."""

    time_s: float
    duration_s: float
    idle: float
    stolen: float
    foreign: float

    @property
    def starved(self) -> bool:
        """Whether too little CPU was idle."""
        return self.idle < MIN_IDLE_CPU

    @property
    def machine_caused(self) -> bool:
        """Whether there would have been enough without neighbours: other guests' and other processes' time."""
        return self.starved and self.idle + self.stolen + self.foreign >= MIN_IDLE_CPU


@dataclass(frozen=True)
class Evidence:
    """What was observed while the run was measured.

    ``timer_lateness_s`` per iteration, in seconds of the machine's clock; ``link_rates`` link ->
    (seconds seen busy, reached / set rate, grain of that measurement); ``overtaking`` is how many segments may be
    ``out_of_order`` because a flow's level changed with as many in flight, None where levels change all the
    time; ``settings`` mismatches found on reading back.
    """

    seconds: Sequence[Second] = ()
    timer_lateness_s: Sequence[float] = ()
    link_rates: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    queue_drops: int = 0
    other_drops: int = 0
    retransmits: int = 0
    out_of_order: int = 0
    overtaking: int | None = 0
    settings: Sequence[str] = ()
    enough_undisturbed: bool = True


def disturbed_spans(seconds: Sequence[Second]) -> list[tuple[float, float]]:
    """The intervals, on the run's clock, in which neighbours left the run too little CPU."""
    return [(second.time_s - second.duration_s, second.time_s) for second in seconds if second.machine_caused]


def judge(evidence: Evidence) -> Fidelity:
    """The verdict on a run, with a reason for everything that is not as it should be."""
    reasons: list[str] = []
    verdicts: list[Verdict] = ["ok"]
    machine_caused = _judge_cpu(evidence, reasons, verdicts)
    lateness = max(evidence.timer_lateness_s, default=0.0)
    _judge_timers(evidence, lateness, reasons, verdicts)
    rate_error = _judge_rates(evidence, reasons, verdicts)
    _judge_losses(evidence, reasons, verdicts)
    verdict: Verdict = "invalid" if "invalid" in verdicts else "degraded" if "degraded" in verdicts else "ok"
    return Fidelity(
        verdict=verdict,
        reasons=tuple(reasons),
        min_idle_cpu=min((second.idle for second in evidence.seconds), default=1.0),
        max_timer_lateness_s=lateness,
        link_rate_error=rate_error,
        unintended_drops=evidence.queue_drops + evidence.other_drops,
        retransmits=evidence.retransmits,
        stolen_cpu=_mean([second.stolen for second in evidence.seconds]),
        machine_caused=machine_caused and verdict != "ok" and len(verdicts) == 2,
    )


def _judge_cpu(evidence: Evidence, reasons: list[str], verdicts: list[Verdict]) -> bool:
    """Return whether a complaint about CPU is the neighbours' doing."""
    own = [second for second in evidence.seconds if second.starved and not second.machine_caused]
    neighbours = [second for second in evidence.seconds if second.machine_caused]
    count = len(evidence.seconds)
    if own:
        lowest = min(own, key=lambda second: second.idle)
        reasons.append(
            f"idle CPU below {MIN_IDLE_CPU:.0%} in {len(own)} of {count} s by the run's own load "
            f"(lowest {lowest.idle:.0%} at {lowest.time_s:.0f} s)"
        )
        verdicts.append("invalid" if len(own) > INVALID_SHARE * count else "degraded")
        return False
    if neighbours and not evidence.enough_undisturbed:
        reasons.append(
            f"other load or stolen CPU left less than {MIN_IDLE_CPU:.0%} idle in {len(neighbours)} of {count} s, "
            "and too few iterations were undisturbed"
        )
        verdicts.append("degraded")
        return True
    if not evidence.enough_undisturbed:
        reasons.append("fewer iterations were made than asked for: measure.limit came first")
        verdicts.append("degraded")
    return False


def _judge_timers(evidence: Evidence, lateness: float, reasons: list[str], verdicts: list[Verdict]) -> None:
    """A few late pauses only disturb their iterations, which are listed and replaced; many, or long ones, degrade."""
    late = [value for value in evidence.timer_lateness_s if value > MAX_TIMER_LATENESS_S]
    count = len(evidence.timer_lateness_s)
    unreplaced = bool(late) and not evidence.enough_undisturbed
    if len(late) > max(1.0, MAX_LATE_SHARE * count) or lateness > MAX_STANDSTILL_S or unreplaced:
        reasons.append(
            f"a compute pause ended late in {len(late)} of {count} iterations "
            f"(by {lateness * 1e3:.0f} ms at most, {MAX_TIMER_LATENESS_S * 1e3:.0f} ms allowed)"
        )
        verdicts.append("degraded")


def _judge_rates(evidence: Evidence, reasons: list[str], verdicts: list[Verdict]) -> float:
    """Judge every link that was seen busy long enough; return the largest error beyond the grain of packets."""
    errors = {
        link: max(0.0, abs(reached - 1.0) - grain)
        for link, (busy_s, reached, grain) in evidence.link_rates.items()
        if busy_s >= MIN_BUSY_S
    }
    worst = max(errors, key=lambda link: errors[link], default=None)
    if worst is None:
        return 0.0
    if errors[worst] > MAX_LINK_RATE_ERROR:
        wrong = [link for link, error in errors.items() if error > MAX_LINK_RATE_ERROR]
        reached = evidence.link_rates[worst][1]
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        reasons.append(f"link {worst}{more} reached {reached:.1%} of the set rate while busy")
        verdicts.append("degraded")
    return errors[worst]


def _judge_losses(evidence: Evidence, reasons: list[str], verdicts: list[Verdict]) -> None:
    if evidence.queue_drops:
        reasons.append(f"{evidence.queue_drops} packets dropped in emulated queues that stand for a lossless fabric")
    if evidence.other_drops:
        reasons.append(f"{evidence.other_drops} packets dropped outside the emulated queues")
    if evidence.retransmits:
        reasons.append(f"{evidence.retransmits} segments were sent again")
    reordered = evidence.overtaking is not None and evidence.out_of_order > evidence.overtaking
    if reordered:
        reasons.append(f"{evidence.out_of_order} segments arrived out of order, {evidence.overtaking} could have")
    if evidence.queue_drops or evidence.other_drops or evidence.retransmits or reordered:
        verdicts.append("degraded")
    if evidence.settings:
        reasons.extend(evidence.settings)
        verdicts.append("invalid")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
