"""The section ``failures`` of a scenario: which parts of the network fail when, by name or drawn; and ``recovery``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from testbed.experiment.failures import DrawnFailures, Failure, Kind, Recovery, drawn, parts_of
from testbed.scenario.document import Problem
from testbed.scenario.quantities import Count, PositiveTime, Seed, Time
from topologies import limits
from topologies.fabric import Fabric

NAMED: Final = ("link", "nic", "switch", "host")
_PARTS: Final = (*NAMED, "each")
_ONLY_DRAWN: Final = ("per_hour", "lasts", "seed")
_ONLY_NAMED: Final = ("at", "until", "flaps")
_EXAMPLES: Final = {"link": "cable", "nic": "NIC", "switch": "switch", "host": "host"}
Part = Annotated[str, Field(max_length=limits.NAME)]
BelowOne = Annotated[float, Field(strict=True, gt=0, lt=1)]


class FlapSpec(BaseModel):
    """A part that fails and comes back in turn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    down: PositiveTime = Field(description="how long it is down each time")
    up: PositiveTime = Field(description="how long it works in between")


class FailureSpec(BaseModel):
    """A cable, NIC, switch or host that fails, or each part of a kind, at times that are drawn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    link: Part | None = Field(None, description="a cable, by either direction: tor0->agg1, h0n0p0->tor0")
    nic: Part | None = Field(None, description="a NIC with all its ports, such as h0n1")
    switch: Part | None = Field(None, description="a switch with all its cables, such as tor0 or agg1")
    host: Part | None = Field(None, description="a host with all that runs on it, such as h3")
    each: Kind | None = Field(None, description="instead of a name: every part of that kind, at times that are drawn")
    at: Time | None = Field(None, description="when it fails")
    until: PositiveTime | None = Field(None, description="when it works again (default: never)")
    rate: BelowOne | None = Field(None, description="of a cable: the share of its rate that is left, such as 0.25")
    loss: BelowOne | None = Field(None, description="of a cable: the share of packets that is lost, such as 0.001")
    flaps: FlapSpec | None = Field(None, description="fails and comes back in turn, from at to until")
    per_hour: Annotated[float, Field(strict=True, gt=0, le=limits.FAILURES_PER_HOUR)] | None = Field(
        None, description="how often each part fails per hour that it works, on average"
    )
    lasts: PositiveTime | None = Field(None, description="how long each failure that is drawn lasts")
    seed: Seed | None = Field(None, description="seed of the draws (default: the scenario's)")

    @property
    def part(self) -> str | None:
        """The part that it names; None where parts are drawn."""
        return next((value for key in NAMED if (value := getattr(self, key)) is not None), None)

    def values(self, fabric: Fabric, until_s: float, seed: int) -> tuple[Failure, ...]:
        """Return the failures of a run on ``fabric`` that takes at most ``until_s``."""
        share, loss = self.rate or 0.0, self.loss or 0.0
        if self.each is not None:
            assert self.per_hour is not None and self.lasts is not None
            rule = DrawnFailures(self.each, self.per_hour, self.lasts, self.seed, share, loss)
            return drawn(rule, fabric, until_s, seed)
        assert self.part is not None and self.at is not None
        down_s, up_s = (0.0, 0.0) if self.flaps is None else (self.flaps.down, self.flaps.up)
        return (Failure(self.part, self.at, self.until, share, loss, down_s, up_s),)


class RecoverySpec(BaseModel):
    """What becomes of a job that failures cut off."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    timeout: PositiveTime = Field(600.0, description="a job that cannot communicate for so long ends (NCCL's watchdog)")
    checkpoint_every: Count = Field(1, description="iterations between checkpoints; it starts again from the last one")
    restart: Time = Field(0.0, description="how long starting again takes")

    def value(self) -> Recovery:
        """Return it as engines take it."""
        return Recovery(self.timeout, self.checkpoint_every, self.restart)


def failures_of(specs: Sequence[FailureSpec], fabric: Fabric, until_s: float, seed: int) -> tuple[Failure, ...]:
    """All failures of a run, in the order in which the scenario has them."""
    return tuple(failure for spec in specs for failure in spec.values(fabric, until_s, seed))


def failure_problems(failures: Mapping[int, FailureSpec], fabric: Fabric | None, until_s: float) -> Iterator[Problem]:
    """Every failure that is wrong by itself, or names what the fabric does not have."""
    for index, spec in failures.items():
        problem = next(_wrong(spec, fabric, until_s), None)
        if problem is not None:
            key, message = problem
            yield Problem(("failures", index, key) if key else ("failures", index), message.format(index=index))


def _wrong(spec: FailureSpec, fabric: Fabric | None, until_s: float) -> Iterator[tuple[str, str]]:
    """The key that is wrong, and why; at most the first is shown."""
    given = [key for key in _PARTS if getattr(spec, key) is not None]
    if len(given) != 1:
        yield "", f"names {' and '.join(given) or 'no part'}, expected one of {', '.join(_PARTS)}"
        return
    (what,) = given
    needed, foreign = (("per_hour", "lasts"), _ONLY_NAMED) if what == "each" else (("at",), _ONLY_DRAWN)
    for key in foreign:
        if getattr(spec, key) is not None:
            yield key, f"has {key} beside {what}, expected {' and '.join(needed)}"
    for key in needed:
        if getattr(spec, key) is None:
            expected = FailureSpec.model_fields[key].description
            yield "", f"missing key '{key}' in failures.{{index}}, expected {expected}"
    for key in ("rate", "loss"):
        if getattr(spec, key) is not None and what != "link" and spec.each not in ("cable", "host-cable"):
            yield key, f"has {key} beside {what}, expected it for cables only"
    yield from _wrong_times(spec, until_s)
    if fabric is not None:
        yield from _unknown(spec, what, fabric) if what != "each" else _too_many(spec, fabric, until_s)


def _wrong_times(spec: FailureSpec, until_s: float) -> Iterator[tuple[str, str]]:
    if spec.at is None:
        return
    if spec.until is not None and spec.until <= spec.at:
        yield "until", f"ends at {spec.until:g} s, expected a time after {spec.at:g} s"
    if spec.at >= until_s:
        yield "at", f"fails at {spec.at:g} s, expected a time before the run's time_limit of {until_s:g} s"
    if spec.flaps is not None:
        times = ((spec.until or until_s) - spec.at) / (spec.flaps.down + spec.flaps.up)
        if times > limits.DRAWN_FAILURES:
            yield "flaps", f"fails {times:.0f} times in a run, expected at most {limits.DRAWN_FAILURES}"


def _unknown(spec: FailureSpec, what: str, fabric: Fabric) -> Iterator[tuple[str, str]]:
    known: Mapping[str, tuple[str, ...]] = {
        "link": tuple(link.name for link in fabric.network_links),
        "nic": tuple(fabric.nics),
        "switch": tuple(fabric.switches),
        "host": tuple(fabric.hosts),
    }
    name = spec.part or ""
    if name not in known[what]:
        near = get_close_matches(name, known[what], 1) or known[what][:1]
        like = near[0] if near else "none"
        yield what, f"no {_EXAMPLES[what]} '{name}' in the fabric, expected one like {like}"


def _too_many(spec: FailureSpec, fabric: Fabric, until_s: float) -> Iterator[tuple[str, str]]:
    assert spec.each is not None
    parts = parts_of(spec.each, fabric)
    if not parts:
        yield "each", f"the fabric has no {spec.each}, expected a kind of part that it has"
    expected = len(parts) * (spec.per_hour or 0.0) * until_s / 3600
    if expected > limits.DRAWN_FAILURES:
        yield "per_hour", f"means {expected:.0f} failures in a run, expected at most {limits.DRAWN_FAILURES}"
