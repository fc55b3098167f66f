"""Failures of cables, NICs, switches and hosts, and what of the network is left at each moment. Pure.

Times are seconds of the scenario.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from types import MappingProxyType
from typing import Final, Literal, get_args

from topologies.fabric import Fabric, LinkKind

Kind = Literal["cable", "host-cable", "nic", "tor", "aggregation", "core", "host"]
"""What failures are drawn for: ``cable`` is one between switches, ``host-cable`` one of a host."""
KINDS: Final = get_args(Kind)
_TIERS: Final[Mapping[str, str]] = {"tor": "tor", "aggregation": "agg", "core": "core"}
_BETWEEN_SWITCHES: Final[frozenset[LinkKind]] = frozenset({"tor-agg", "agg-core"})
SECONDS_PER_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Failure:
    """``part`` (a link, NIC, switch or host) fails at ``at_s``, for good or until ``until_s``.

    ``share``: what is left of a cable's rate; ``loss``: the share of packets that a cable loses. With neither it
    carries nothing. ``down_s`` and ``up_s``: a part that flaps, down and up in turn; both 0 where it does not.
    """

    part: str
    at_s: float
    until_s: float | None = None
    share: float = 0.0
    loss: float = 0.0
    down_s: float = 0.0
    up_s: float = 0.0

    @property
    def degrades(self) -> bool:
        """Whether it carries less, and not nothing."""
        return self.share > 0 or self.loss > 0


@dataclass(frozen=True, slots=True)
class DrawnFailures:
    """Each part of a ``kind`` fails ``per_hour`` times an hour on average while it works, for ``lasts_s`` each time.

    ``seed``: None for that of the run. ``share`` and ``loss`` are those of :class:`Failure`.
    """

    kind: Kind
    per_hour: float
    lasts_s: float
    seed: int | None = None
    share: float = 0.0
    loss: float = 0.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """What becomes of a job that cannot communicate: after ``timeout_s`` it ends, and starts again once it can.

    ``timeout_s``: 600 is PyTorch's for NCCL. It then starts ``restart_s`` later, from the last iteration that is a
    multiple of ``checkpoint_every``; 1 is a checkpoint of every iteration, as in the memory of other hosts (Gemini,
    Wang et al., SOSP 2023).
    """

    timeout_s: float = 600.0
    checkpoint_every: int = 1
    restart_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Degraded:
    """What a cable still does."""

    share: float = 1.0
    loss: float = 0.0


@dataclass(frozen=True)
class NetworkState:
    """What does not work, or works less, from ``at_s`` on: cables by either of their links, and hosts.

    ``parts``: what the scenario says has failed.
    """

    at_s: float
    down: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    degraded: Mapping[str, Degraded] = field(default_factory=lambda: MappingProxyType({}))
    parts: frozenset[str] = frozenset()


def cables_of(what: str, fabric: Fabric) -> tuple[str, ...]:
    """The cables that ``what`` takes along, as ``Fabric.cable_of`` names them; ``KeyError`` for an unknown part."""
    if what in fabric.hosts:
        return tuple(cable for nic in fabric.hosts[what].nics for cable in cables_of(nic, fabric))
    if what in fabric.nics:
        return tuple(fabric.cable_of[fabric.uplink(port).name] for port in fabric.nics[what].ports)
    if what in fabric.switches:
        return tuple(fabric.cable_of[link.name] for link in fabric.links_from.get(what, ()))
    return (fabric.cable_of[what],)


def drawn(failures: DrawnFailures, fabric: Fabric, until_s: float, seed: int) -> tuple[Failure, ...]:
    """Return the failures of every part of the kind before ``until_s``, in order of time.

    Each part has draws of its own, so that one more part changes nothing for the others.
    """
    found: list[Failure] = []
    own = seed if failures.seed is None else failures.seed
    for place, part in enumerate(parts_of(failures.kind, fabric)):
        draw = Random(f"{own} {failures.kind} {place}")
        now = 0.0
        while (now := now + draw.expovariate(failures.per_hour / SECONDS_PER_HOUR)) < until_s:
            found.append(Failure(part, now, now + failures.lasts_s, failures.share, failures.loss))
            now += failures.lasts_s
    return tuple(sorted(found, key=lambda failure: (failure.at_s, failure.part)))


def parts_of(kind: Kind, fabric: Fabric) -> tuple[str, ...]:
    """Every part of ``fabric`` of a kind, in its order."""
    if kind == "host":
        return tuple(fabric.hosts)
    if kind == "nic":
        return tuple(fabric.nics)
    if kind in _TIERS:
        return tuple(name for name, switch in fabric.switches.items() if switch.tier == _TIERS[kind])
    kinds = _BETWEEN_SWITCHES if kind == "cable" else {"host-tor"}
    cables = (fabric.cable_of[link.name] for link in fabric.network_links if link.kind in kinds)
    return tuple(dict.fromkeys(cables))


def states(failures: Sequence[Failure], fabric: Fabric, until_s: float = inf) -> tuple[NetworkState, ...]:
    """Return the network's states in order of time, from the first failure on; neighbours differ.

    ``KeyError`` for a part that the fabric does not have.
    """
    spans = [(failure, *span) for failure in failures for span in _spans(failure, until_s)]
    moments = sorted({moment for _, *ends in spans for moment in ends if moment < until_s})
    found = [NetworkState(-inf)]
    for moment in moments:
        active = [failure for failure, start, end in spans if start <= moment < end]
        now = _state(moment, active, fabric)
        if _differ(found[-1], now):
            found.append(now)
    return tuple(found[1:])


def _spans(failure: Failure, until_s: float) -> Iterator[tuple[float, float]]:
    """When it is felt: from, until."""
    end = inf if failure.until_s is None else failure.until_s
    if failure.down_s == 0.0:
        yield failure.at_s, end
        return
    start = failure.at_s
    while start < min(end, until_s):
        yield start, min(end, start + failure.down_s)
        start += failure.down_s + failure.up_s


def _state(at_s: float, active: Sequence[Failure], fabric: Fabric) -> NetworkState:
    down: set[str] = set()
    degraded: dict[str, Degraded] = {}
    for failure in active:
        cables = cables_of(failure.part, fabric)
        if failure.degrades:
            for cable in cables:
                degraded[cable] = _worse(degraded.get(cable, Degraded()), failure)
        else:
            down |= set(cables)
    return NetworkState(
        at_s,
        frozenset(down),
        frozenset(failure.part for failure in active if failure.part in fabric.hosts),
        {cable: what for cable, what in degraded.items() if cable not in down},
        frozenset(failure.part for failure in active),
    )


def _worse(before: Degraded, failure: Failure) -> Degraded:
    """Several failures of one cable: shares and what gets through multiply."""
    share = failure.share or 1.0
    return Degraded(before.share * share, before.loss + failure.loss - before.loss * failure.loss)


def _differ(one: NetworkState, other: NetworkState) -> bool:
    return (one.down, one.hosts, dict(one.degraded)) != (other.down, other.hosts, dict(other.degraded))


def part_spans(found: Sequence[NetworkState], until_s: float) -> list[tuple[str, float, float | None]]:
    """Return (part, from, until) of each time that one failed before ``until_s``; until None: it is not back."""
    spans: list[tuple[str, float, float | None]] = []
    since: dict[str, float] = {}
    for state in (state for state in found if state.at_s < until_s):
        for part in sorted(since.keys() - state.parts):
            spans.append((part, since.pop(part), state.at_s))
        since.update({part: state.at_s for part in sorted(state.parts) if part not in since})
    return sorted(
        [*spans, *((part, begin, None) for part, begin in since.items())], key=lambda span: (span[1], span[0])
    )


def change_between(before: NetworkState, after: NetworkState) -> str:
    """Return in words what has changed: ``tor0 failed, h3 works again``."""
    failed, back = sorted(after.parts - before.parts), sorted(before.parts - after.parts)
    return ", ".join([*(f"{part} failed" for part in failed), *(f"{part} works again" for part in back)])


def unreachable_hosts(fabric: Fabric, state: NetworkState) -> frozenset[str]:
    """Return the hosts that have failed, or have no cable left."""
    dark = {
        name
        for name, host in fabric.hosts.items()
        if all(cable in state.down for nic in host.nics for cable in cables_of(nic, fabric))
    }
    return frozenset(dark | state.hosts)
