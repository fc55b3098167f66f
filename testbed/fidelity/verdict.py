"""The fidelity verdict: evidence in, ``ok``, ``degraded`` or ``invalid`` out. Pure.

Thresholds and their reasons are here, and in :mod:`testbed.fidelity.interference` those of what neighbours took.
Evidence is in seconds of the machine's clock since the run began; findings are undilated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from testbed.fidelity.interference import (
    MAX_RUN_DELAY,
    MAX_STANDSTILL_S,
    MAX_STOLEN,
    MIN_IDLE_CPU,
    Second,
    disturbed_spans,
    still_explained,
    stood_still,
    taken_spans,
    wait_explained,
)
from testbed.fidelity.observations import (
    Change,
    Order,
    Standstill,
    Wait,
    merged,
    milliseconds,
    touches,
    wait_findings,
)
from testbed.results.record import Fidelity, Finding, Verdict

MAX_TIMER_LATENESS_S: Final = 0.020
"""Seconds of the machine's clock: a compute pause that ends this late moves an iteration of one second by 2 %.

The iterations that a late pause touches are disturbed: listed, replaced by others, not counted."""

MAX_LATE_SHARE: Final = 0.02
"""More than one iteration, and more than this share, with a late pause: the run's own overload, no passing hitch."""

MAX_LINK_RATE_ERROR: Final = 0.02
"""A busy link that reaches less, or more, than its set rate by this share is not the link of the scenario."""

MIN_BUSY_S: Final = 2.0
"""A link's rate is judged once it was seen busy this long, in seconds of the machine's clock."""

INVALID_SHARE: Final = 0.2
"""More than this share of seconds without idle CPU: the run as a whole shows the machine, not the fabric."""

MAX_QUOTA_S: Final = 0.020
"""Seconds in a second for which a quota of CPU time may hold Open vSwitch back: as long as a timer may be late. Held
back it forwards nothing at all."""

MAX_LOWER_LEVEL: Final = 0.02
"""Share of a link's capacity that lower levels may get while a higher one provably waits: strict priority gives them
nothing, but a packet that is being sent ends first, and a class's very first one borrows nothing."""

MIN_ORDER_S: Final = 0.1
"""The order of levels is judged on a link once a higher one was seen to wait this long: a dozen looks."""

MIN_LOWER_PACKETS: Final = 4
"""Packets of lower levels among these are grain: those that had begun at the ends of stretches."""


@dataclass(frozen=True)
class Evidence:
    """What was observed while the run was measured.

    ``timer_lateness_s`` per iteration, in seconds of the machine's clock, ``late`` the spans of those with a
    late timer, ``out_of_step_s`` the largest lateness before measuring began; ``link_rates`` link -> (seconds
    seen busy, reached / set rate, grain of that measurement), ``rate_spans`` when; ``overtaking`` is how many
    segments may be ``out_of_order`` because a flow's level changed with as many in flight, None where levels
    change all the time; ``settings`` mismatches found on reading back at the end, ``changes`` those found while
    the run went on. ``discard``: what is limited in time disturbs the iterations it touches instead of the run.
    Not ``lossless``: cables fail as the scenario says, so that packets are lost on them and sent again.
    """

    seconds: Sequence[Second] = ()
    timer_lateness_s: Sequence[float] = ()
    late: Sequence[tuple[float, float]] = ()
    out_of_step_s: float = 0.0
    link_rates: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    rate_spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    queue_drops: int = 0
    other_drops: int = 0
    retransmits: int = 0
    out_of_order: int = 0
    overtaking: int | None = 0
    settings: Sequence[str] = ()
    enough_undisturbed: bool = True
    waits: Sequence[Wait] = ()
    standstills: Sequence[Standstill] = ()
    changes: Sequence[Change] = ()
    order: Mapping[str, Order] = field(default_factory=dict)
    cores: int = 1
    dilation: float = 1.0
    end_s: float = 0.0
    discard: bool = False
    lossless: bool = True


@dataclass(frozen=True)
class _Charge:
    """A reason not to believe the run; ``limited``: it touches the iterations in its findings' spans and no others.

    Without a verdict it is on record only: what it touched is discarded already.
    """

    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...]
    limited: bool = False
    machine_caused: bool = False


def discarded_spans(evidence: Evidence) -> list[tuple[float, float]]:
    """The intervals, on the run's clock, that ``discard`` leaves out beside those that neighbours disturbed."""
    spans = [(second.start_s, second.time_s) for second in evidence.seconds if second.starved]
    spans += [(s.from_s, s.to_s) for s in evidence.standstills if stood_still(s)]
    spans += [(w.start_s, w.time_s) for w in evidence.waits if w.quota_s > MAX_QUOTA_S or w.share > MAX_RUN_DELAY]
    return spans + [(change.from_s, change.to_s) for change in evidence.changes]


def judge(evidence: Evidence) -> Fidelity:
    """The verdict on a run, with a reason for everything that is not as it should be, and when and where it was."""
    steps: tuple[Callable[[Evidence], Iterable[_Charge]], ...] = (
        _judge_cpu,
        _judge_beginning,
        _judge_timers,
        _judge_standstills,
        _judge_waits,
        _judge_rates,
        _judge_order,
        _judge_losses,
        _judge_settings,
    )
    charges = [charge for step in steps for charge in step(evidence)]
    discarded = evidence.discard and evidence.enough_undisturbed
    counted = [charge for charge in charges if not (discarded and charge.limited) and charge.verdict != "ok"]
    verdicts = {charge.verdict for charge in counted}
    verdict: Verdict = "invalid" if "invalid" in verdicts else "degraded" if "degraded" in verdicts else "ok"
    findings = [
        _undilated(replace(finding, discarded=charge not in counted), evidence.dilation)
        for charge in charges
        for finding in charge.findings
    ]
    return Fidelity(
        verdict=verdict,
        reasons=tuple(charge.reason for charge in counted),
        min_idle_cpu=min((second.idle for second in evidence.seconds), default=1.0),
        max_timer_lateness_s=max(evidence.timer_lateness_s, default=0.0),
        link_rate_error=max(_rate_errors(evidence).values(), default=0.0),
        unintended_drops=evidence.queue_drops + evidence.other_drops,
        retransmits=evidence.retransmits,
        stolen_cpu=_mean([second.stolen for second in evidence.seconds]),
        machine_caused=bool(counted) and all(charge.machine_caused for charge in counted),
        findings=tuple(sorted(findings, key=lambda finding: (finding.from_s, finding.kind, finding.what))),
        max_run_delay=max((wait.share for wait in evidence.waits), default=0.0),
        lower_level_share=max((_lower_share(order) for order in evidence.order.values()), default=0.0),
    )


def _judge_cpu(evidence: Evidence) -> Iterable[_Charge]:
    """Seconds without idle CPU, told apart by who took it."""
    own = [second for second in evidence.seconds if second.starved and not second.disturbed]
    neighbours = [second for second in evidence.seconds if second.disturbed]
    count = len(evidence.seconds)
    taken = tuple(_neighbours(span) for span in _spans_of(neighbours))
    short = not evidence.enough_undisturbed
    if own:
        lowest = min(own, key=lambda second: second.idle)
        yield _Charge(
            "invalid" if len(own) > INVALID_SHARE * count else "degraded",
            f"idle CPU below {MIN_IDLE_CPU:.0%} in {len(own)} of {count} s by the run's own load "
            f"(lowest {lowest.idle:.0%} at {lowest.time_s:.0f} s)",
            tuple(_starved(span) for span in _spans_of(own)),
            limited=True,
        )
    if taken and short and not own:
        yield _Charge(
            "degraded",
            f"neighbours left less than {MIN_IDLE_CPU:.0%} of the CPU idle or other guests took more than "
            f"{MAX_STOLEN:.0%} in {len(neighbours)} of {count} s, and too few iterations were undisturbed",
            taken,
            machine_caused=True,
        )
    elif taken:
        yield _Charge("ok", "", taken)
    elif short and not own:
        machine = bool(disturbed_spans(evidence.seconds, evidence.standstills, evidence.waits, evidence.cores))
        reason = "fewer iterations were made than asked for: measure.time_limit came first"
        if machine or evidence.late:
            reason = "too few iterations were undisturbed"
        yield _Charge("degraded", reason, (Finding("short", 0.0, evidence.end_s, reason),), machine_caused=machine)


def _judge_beginning(evidence: Evidence) -> Iterable[_Charge]:
    """A job that gets out of step with the others while it warms up stays so: no iteration can replace that."""
    if evidence.out_of_step_s > MAX_TIMER_LATENESS_S:
        reason = (
            f"a job began, or ended a pause of its warm-up, {evidence.out_of_step_s * 1e3:.0f} ms late "
            f"({MAX_TIMER_LATENESS_S * 1e3:.0f} ms allowed): it is out of step with the others"
        )
        yield _Charge("degraded", reason, (Finding("timer", 0.0, 0.0, reason),))


def _judge_timers(evidence: Evidence) -> Iterable[_Charge]:
    """A few late pauses only disturb their iterations, which are listed and replaced; many, or long ones, degrade."""
    late = [value for value in evidence.timer_lateness_s if value > MAX_TIMER_LATENESS_S]
    if not late:
        return
    count, longest = len(evidence.timer_lateness_s), max(late)
    reason = (
        f"a compute pause ended late in {len(late)} of {count} iterations "
        f"(by {longest * 1e3:.0f} ms at most, {MAX_TIMER_LATENESS_S * 1e3:.0f} ms allowed)"
    )
    unreplaced = not evidence.enough_undisturbed
    serious = len(late) > max(1.0, MAX_LATE_SHARE * count) or longest > MAX_STANDSTILL_S or unreplaced
    spans = merged(evidence.late)
    findings = tuple(Finding("timer", begin, end, "a compute pause ended late") for begin, end in spans)
    yield _Charge("degraded" if serious else "ok", reason, findings, limited=True)


def _judge_standstills(evidence: Evidence) -> Iterable[_Charge]:
    """Processes that did nothing although something was due; the machine's doing if it took the CPU meanwhile."""
    still = [each for each in evidence.standstills if stood_still(each)]
    for machine in (True, False):
        found = [each for each in still if still_explained(each, evidence.seconds, evidence.cores) is machine]
        if not found:
            continue
        longest = max(found, key=lambda each: each.to_s - each.from_s)
        more = f" ({len(found)} times in all)" if len(found) > 1 else ""
        by = ", CPU taken by neighbours meanwhile" if machine else ""
        yield _Charge(
            "degraded" if not machine or not evidence.enough_undisturbed else "ok",
            f"{longest.process} stood still for {milliseconds(longest)} at {longest.from_s:.1f} s{more}{by}",
            tuple(
                Finding("standstill", s.from_s, s.to_s, f"{s.process} stood still for {milliseconds(s)}{by}")
                for s in found
            ),
            limited=True,
            machine_caused=machine,
        )


def _judge_waits(evidence: Evidence) -> Iterable[_Charge]:
    """Processes held back by a quota, and such as wait for a CPU too much; not in seconds that neighbours starved."""
    held = [wait for wait in evidence.waits if wait.quota_s > MAX_QUOTA_S]
    if held:
        worst = max(held, key=lambda wait: wait.quota_s)
        yield _Charge(
            "degraded",
            f"a CPU quota held {worst.process} back in {len(held)} of {len(evidence.seconds)} s "
            f"(for {worst.quota_s * 1e3:.0f} ms at {worst.time_s:.0f} s)",
            wait_findings("quota", held, "a CPU quota held {} back"),
            limited=True,
        )
    taken = taken_spans(evidence.seconds)
    slow = [w for w in evidence.waits if w.share > MAX_RUN_DELAY and w not in held and not touches(w, taken)]
    for machine in (True, False):
        found = [wait for wait in slow if wait_explained(wait, evidence.seconds, evidence.cores) is machine]
        if found:
            yield _slow(found, machine, evidence.enough_undisturbed)


def _slow(waits: Sequence[Wait], machine: bool, enough_undisturbed: bool) -> _Charge:
    """The charge for ``waits`` that are too long, by neighbours (``machine``) or not."""
    worst = max(waits, key=lambda wait: wait.share)
    by = ", CPU taken by neighbours meanwhile" if machine else ""
    return _Charge(
        "degraded" if not machine or not enough_undisturbed else "ok",
        f"{worst.process} was ready and waited for a CPU for {worst.share:.0%} of the second before "
        f"{worst.time_s:.0f} s, {MAX_RUN_DELAY:.0%} allowed ({len({w.time_s for w in waits})} s in all){by}",
        wait_findings("wait", waits, "{} waited for a CPU" + by),
        limited=True,
        machine_caused=machine,
    )


def _judge_rates(evidence: Evidence) -> Iterable[_Charge]:
    """Judge every link that was seen busy long enough; the worst is the reason, all are findings."""
    wrong = {link: error for link, error in _rate_errors(evidence).items() if error > MAX_LINK_RATE_ERROR}
    if not wrong:
        return
    worst = max(wrong, key=lambda link: wrong[link])
    more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    yield _Charge(
        "degraded",
        f"link {worst}{more} reached {evidence.link_rates[worst][1]:.1%} of the set rate while busy",
        tuple(
            Finding(
                "rate",
                *evidence.rate_spans.get(link, (0.0, evidence.end_s)),
                f"link {link} reached {evidence.link_rates[link][1]:.1%} of the set rate while busy",
                (link,),
            )
            for link in wrong
        ),
    )


def _judge_order(evidence: Evidence) -> Iterable[_Charge]:
    """Lower levels that were served while a higher one waited."""
    for link, order in evidence.order.items():
        if _lower_share(order) > MAX_LOWER_LEVEL:
            reason = (
                f"on link {link} level {order.lower} got {_lower_share(order):.1%} of the capacity "
                f"while level {order.higher} waited"
            )
            yield _Charge("degraded", reason, (Finding("order", order.from_s, order.to_s, reason, (link,)),))


def _judge_losses(evidence: Evidence) -> Iterable[_Charge]:
    reasons = []
    if evidence.queue_drops:
        reasons.append(f"{evidence.queue_drops} packets dropped in emulated queues that stand for a lossless fabric")
    if evidence.other_drops and evidence.lossless:
        reasons.append(f"{evidence.other_drops} packets dropped outside the emulated queues")
    if evidence.retransmits and evidence.lossless:
        reasons.append(f"{evidence.retransmits} segments were sent again")
    if evidence.lossless and evidence.overtaking is not None and evidence.out_of_order > evidence.overtaking:
        reasons.append(f"{evidence.out_of_order} segments arrived out of order, {evidence.overtaking} could have")
    for reason in reasons:
        yield _Charge("degraded", reason, (Finding("loss", 0.0, evidence.end_s, reason),))


def _judge_settings(evidence: Evidence) -> Iterable[_Charge]:
    """What was not as set or decided: some time in the run, with the seconds concerned, or when it ended."""
    for change in evidence.changes:
        reason = f"{change.text} ({change.from_s:.0f} to {change.to_s:.0f} s)"
        links = (change.link,) if change.link else ()
        finding = Finding(change.kind, change.from_s, change.to_s, change.text, links)
        yield _Charge("invalid", reason, (finding,), limited=not change.lasting)
    for reason in evidence.settings:
        kind = "mark" if "DSCP" in reason and "sampled" in reason else "path" if "switch " in reason else "setting"
        yield _Charge("invalid", reason, (Finding(kind, 0.0, evidence.end_s, reason),))


def _rate_errors(evidence: Evidence) -> dict[str, float]:
    """Link -> error of its rate beyond the grain of packets, for links seen busy long enough."""
    return {
        link: rate_error(reached, grain)
        for link, (busy_s, reached, grain) in evidence.link_rates.items()
        if busy_s >= MIN_BUSY_S
    }


def rate_error(reached: float, grain: float) -> float:
    """How far ``reached`` (share of the set rate) is from 1 beyond the ``grain`` of packets: what is judged."""
    return max(0.0, abs(reached - 1.0) - grain)


def _spans_of(seconds: Sequence[Second]) -> list[list[Second]]:
    """Seconds that follow one another, together."""
    spans: list[list[Second]] = []
    for second in seconds:
        if spans and second.start_s - spans[-1][-1].time_s < second.duration_s / 2:
            spans[-1].append(second)
        else:
            spans.append([second])
    return spans


def _neighbours(span: Sequence[Second]) -> Finding:
    idle = min(second.idle for second in span)
    stolen, foreign = max(s.stolen for s in span), max(s.foreign for s in span)
    return Finding(
        "neighbours",
        span[0].start_s,
        span[-1].time_s,
        f"{idle:.0%} of the CPU idle: other processes took up to {foreign:.0%}, other guests {stolen:.0%}",
    )


def _starved(span: Sequence[Second]) -> Finding:
    idle = min(second.idle for second in span)
    return Finding("cpu", span[0].start_s, span[-1].time_s, f"{idle:.0%} of the CPU idle by the run's own load")


def _lower_share(order: Order) -> float:
    """Share of the capacity that lower levels got, packets that had begun left out; 0 where too little was seen."""
    beyond = order.lower_bytes - MIN_LOWER_PACKETS * order.packet
    return max(0.0, beyond / order.capacity) if order.waited_s >= MIN_ORDER_S and order.capacity > 0 else 0.0


def _undilated(finding: Finding, dilation: float) -> Finding:
    return replace(finding, from_s=finding.from_s / dilation, to_s=finding.to_s / dilation)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
