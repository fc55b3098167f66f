"""Long-run rates of running jobs, each found from just the jobs that can slow it down, and kept while those stay.

Links serve levels strictly: a job is slowed by jobs of its own and of more urgent levels on its links, by those that
slow them, and so on; never by others. An event therefore changes the rates of the jobs that it touches and of those
below them. The rest of the group, however many links join it, goes on as it was; and a job beside which the same jobs
run again has the rate that it had. Sets that have most jobs in common are settled as one. A link that a job, those of
its level and those above it could not fill, all sending at full speed, slows the job in no way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from testbed.engines.replay.rates.link_users import LinkUsers
from testbed.engines.replay.running_job import ReplayedJob
from testbed.fluid.fluids import Contention
from testbed.fluid.numerical_settings import NumericalSettings
from testbed.fluid.steady_state import settle, state_in_phase

MOST_KNOWN: Final = 64
"""Rates that are kept of a job; all are forgotten when there are more."""
NEW: Final = 0.5
"""Share of a set of jobs that may be new to others that it is settled with: computing the rest twice takes longer."""
MOST_TOGETHER: Final = 40
"""Sets do not grow beyond so many jobs by that: the more there are, the longer each of them takes."""


class LongRunRates:
    """``running`` are the jobs by name, ``users`` which links and GPUs each of them uses, and its level."""

    def __init__(self, running: Mapping[str, ReplayedJob], users: LinkUsers, numerics: NumericalSettings) -> None:
        self._running, self._users, self._numerics = running, users, numerics
        self.settled = 0
        """How often rates were computed, not looked up."""

    def after(self, touched: Sequence[str], now_s: float) -> dict[str, float]:
        """Return the rates of all whom an event affects, brought to ``now_s``.

        ``touched`` are the jobs whose links, level or neighbours may have changed.
        """
        names = self._below(self._look_around(touched))
        slowed_by = {name: self._above(self._running[name]) for name in names}
        rates: dict[str, float] = {}
        unknown: list[str] = []
        for name, above in slowed_by.items():
            running = self._running[name]
            if len(above) == 1:
                rates[name] = 1.0 / running.fluid.period_s
            elif (known := running.known_rates.get(_sign_of(above))) is not None:
                rates[name] = known
            else:
                unknown.append(name)
        for jobs in taken_together([slowed_by[name] for name in unknown]):
            rates |= self._found(jobs, [each for each in unknown if each not in rates], now_s)
        for name in unknown:
            known_rates = self._running[name].known_rates
            if len(known_rates) >= MOST_KNOWN:
                known_rates.clear()
            known_rates[_sign_of(slowed_by[name])] = rates[name]
        return {name: rates[name] for name in names}

    def _look_around(self, names: Sequence[str]) -> list[str]:
        """Note who may slow each of ``names`` directly; return those of whom that has changed."""
        changed: list[str] = []
        for name, (above, meets) in zip(names, self._users.who_slows(names), strict=True):
            running = self._running[name]
            pack = running.pack
            running.above = {other: self._running[other] for other in above}
            slowing = running.above.values()
            for each in slowing:
                each.below.add(name)
            running.shares = meets
            running.shares_pcie = meets and self._users.any_shared(running.traffic.pcie_links)
            sign = hash((running.traffic.sign, pack, frozenset(each.traffic.sign for each in slowing)))
            if sign != running.sign:
                running.sign = sign
                changed.append(name)
        return changed

    def _below(self, names: Iterable[str]) -> list[str]:
        """``names`` and all whom these may slow, directly or through others; in the order of the running jobs."""
        reached, edge = set(names), list(names)
        while edge:
            name = edge.pop()
            below = self._running[name].below
            for other in [other for other in below if other not in reached]:
                if other in self._running and name in self._running[other].above:
                    reached.add(other)
                    edge.append(other)
                else:  # it was below once
                    below.remove(other)
        return [name for name in self._running if name in reached] if reached else []

    def _above(self, running: ReplayedJob) -> dict[str, ReplayedJob]:
        """``running`` and all who may slow it, directly or through others."""
        reached, edge = {running.name: running}, [running]
        while edge:
            above = edge.pop().above
            for name in above.keys() - reached.keys():
                reached[name] = above[name]
                edge.append(above[name])
        return reached

    def _found(self, jobs: Mapping[str, ReplayedJob], wanted: Sequence[str], now_s: float) -> dict[str, float]:
        """Settle ``jobs``, and return the rates of those that are ``wanted``."""
        self.settled += 1
        members = sorted(jobs.values(), key=lambda each: (each.fluid.level, each.name))
        for each in members:
            each.advance(now_s, each.rate)
        on = Contention.of([each.fluid for each in members], self._users.shared_among([each.name for each in members]))
        states = [state_in_phase(each.fluid, each.phase) for each in members]
        settled = settle(on, None, states, packs=[each.pack for each in members], numerics=self._numerics)
        found = {each.name: rate for each, rate in zip(members, settled.rates, strict=True)}
        return {name: found[name] for name in wanted if name in found}


def taken_together(sets: Iterable[Mapping[str, ReplayedJob]]) -> list[dict[str, ReplayedJob]]:
    """Return unions of ``sets``, each of which is part of one: those that have most of their jobs in common.

    A job's rate is the same in any set with all who may slow it and all who may slow those.
    """
    found: list[dict[str, ReplayedJob]] = []
    for jobs in sorted(sets, key=len, reverse=True):
        for union in found:
            new = len(jobs.keys() - union.keys())
            if new <= NEW * len(jobs) and (new == 0 or len(union) + new <= MOST_TOGETHER):
                union |= jobs
                break
        else:
            found.append(dict(jobs))
    return found


def _sign_of(jobs: Mapping[str, ReplayedJob]) -> frozenset[int]:
    """What tells one set of jobs from another: who they are, on which links, and who is above whom."""
    return frozenset(each.sign for each in jobs.values())
