"""What jobs that share links settle down to: iterations per second in the long run, without stepping through weeks.

The jobs are the fluids of :mod:`testbed.flow.periodic`. As long as nobody comes or goes they repeat, in
the long run, the same pattern; so a stretch of it is computed, doubled until its average stands
still, and the average holds for the rest. Averages weigh the middle of the stretch most (a triangle),
so that iterations cut at its ends do not matter. Any number of jobs; the loop over events is
:mod:`testbed.flow.steady_kernel`. Jobs that share GPUs compute one at a time, whoever asked first, as
:mod:`workloads.worker.shared_gpus` has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import Final

import numpy as np

from testbed.flow.maxmin import Floats, Integers
from testbed.flow.periodic import SLACK_S, state_at_start
from testbed.flow.steady_kernel import run

FIRST_PERIODS: Final = 8
"""Iterations of the slowest job, alone, in the first stretch."""
MOST_DOUBLINGS: Final = 6
FINEST: Final = 256
"""Iterations of a stretch that are computed one by one; more only as :func:`_bundles` of them."""
MUCH: Final = 8.0
"""Iterations that are so many times as long are no longer like each other."""


@dataclass(frozen=True, slots=True)
class Fluid:
    """A job on its links. Seconds per iteration: ``compute_s``, ``lead_s`` of it before communication may start.

    ``loads``: link -> seconds that the link needs for an iteration's bytes. ``level``: 0 is served first.
    ``pause_s``: what the job waits before each iteration to keep a time shift. ``offset_s``: how far into an
    iteration, alone, the job stands at time 0. ``weight``: its GPUs.
    """

    compute_s: float
    lead_s: float
    loads: Mapping[int, float]
    level: int
    weight: float
    pause_s: float = 0.0
    offset_s: float = 0.0

    @property
    def communication_s(self) -> float:
        """Seconds of communication alone: those of the most loaded link."""
        return max(self.loads.values(), default=0.0)

    @property
    def period_s(self) -> float:
        """Seconds of an iteration alone."""
        return self.pause_s + max(self.compute_s, self.lead_s + self.communication_s)


State = tuple[float, float, float]
"""What is left of an iteration: seconds of compute, seconds of the lead in it, and the share of communication."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Iterations per second of each job, the seconds that were computed to know it, and where the jobs stand then.

    ``lasting``: these are long-run rates, not averages over just ``horizon_s``.
    """

    rates: tuple[float, ...]
    horizon_s: float
    states: tuple[State, ...]
    lasting: bool


def settle(
    jobs: Sequence[Fluid],
    horizon_s: float | None = None,
    states: Sequence[State | None] = (),
    limit_s: float = inf,
    packs: Sequence[int] = (),
) -> Settled:
    """Return the long-run rates of ``jobs``; with ``horizon_s`` the plain averages over just that time from 0 on.

    ``states`` say where the jobs stand at 0; None, or no states, for one that stands where its ``offset_s`` says.
    No more than ``limit_s`` seconds are computed: rates that have not settled by then are averages over those.
    ``packs``: jobs of the same number, 0 or above, share their GPUs; -1, or no packs, for one that shares with nobody.
    """
    pack = _packs(packs, len(jobs))
    first = FIRST_PERIODS * max(job.period_s for job in jobs) if horizon_s is None else horizon_s
    if limit_s <= 0.0:
        raise ValueError(f"rates need a time above 0 s to settle in, not {limit_s:g} s")
    starts, links, shares, count = _shared_links(jobs)
    bundles, doublings = np.ones(len(jobs)), 0
    if horizon_s is None:
        bundles, doublings = _bundles(jobs, starts, links, pack, min(first, limit_s)), MOST_DOUBLINGS
    times = np.array([[j.compute_s + j.pause_s, j.lead_s + j.pause_s, j.communication_s, j.offset_s] for j in jobs])
    times *= bundles[:, None]
    levels = np.array([job.level for job in jobs], np.int64)
    weights = np.array([job.weight for job in jobs], float)
    rates = np.zeros(len(jobs))
    left = _state(times, bundles, states)
    reached = run(left, times, starts, links, shares, count, levels, weights, pack, first, limit_s, doublings, rates)
    lasting = horizon_s is None and reached < limit_s - SLACK_S
    left[:2] /= bundles
    left[2] = np.divide(left[2], times[:, 2], out=np.zeros(len(jobs)), where=times[:, 2] > 0)
    return Settled(tuple((rates * bundles).tolist()), reached, tuple(zip(*left.tolist(), strict=True)), lasting)


def _state(times: Floats, bundles: Floats, states: Sequence[State | None]) -> Floats:
    """What is left of each job's iteration [3, jobs]: as ``states`` have it, or the offset in ``times``."""
    left = state_at_start(times)
    for number, state in enumerate(states):
        if state is not None:
            whole = (bundles[number], bundles[number], times[number, 2])
            left[:, number] = np.minimum(np.array(state) * whole, times[number, :3])
    return left


def _bundles(jobs: Sequence[Fluid], rows: Integers, links: Integers, pack: Integers, stretch_s: float) -> Floats:
    """How many iterations of each job are taken as one, so many times as long; mostly 1. Links as in `_shared_links`.

    What lies between iterations of milliseconds and of seconds does not depend on how short the short ones are, only on
    their shares of compute and communication. Jobs that share links and have like iterations are taken alike, so that
    time shifts between them stay what they are. Those that take turns on GPUs are taken one by one.
    """
    one_by_one = pack >= 0
    uses = np.zeros((len(jobs), links.max(initial=0) + 1), np.float32)
    uses[np.repeat(np.arange(len(jobs)), np.diff(rows)), links] = 1.0
    periods = np.array([job.period_s for job in jobs])
    ratios = periods[:, None] / periods
    alike = (uses @ uses.T > 0.0) & (ratios < MUCH) & (ratios * MUCH > 1.0) | np.eye(len(jobs), dtype=np.bool_)
    most = np.where(one_by_one, 0.0, stretch_s / FINEST / periods)
    while True:  # over all whom like iterations join, directly or through others
        least = np.where(alike, most, inf).min(axis=1)
        if np.array_equal(least, most):
            return np.maximum(1.0, np.floor(most))
        most = least


def _packs(packs: Sequence[int], jobs: int) -> Integers:
    """The packs by job, numbered from 0; -1 for jobs that share with nobody here."""
    given = list(packs) or [-1] * jobs
    shared = [pack for pack in dict.fromkeys(given) if pack >= 0 and given.count(pack) > 1]
    return np.array([shared.index(pack) if pack in shared else -1 for pack in given], np.int64)


def _shared_links(jobs: Sequence[Fluid]) -> tuple[Integers, Integers, Floats, int]:
    """Links that several jobs use, in rows by job: starts [jobs + 1], link numbers, shares at full speed; their count.

    Of links with the same users only those matter that are not less loaded by everyone than another.
    """
    uses = Counter(chain.from_iterable(job.loads for job in jobs))
    several = {link for link, count in uses.items() if count > 1}
    users: dict[int, list[int]] = {}
    for number, job in enumerate(jobs):
        for link in [link for link in job.loads if link in several]:
            if job.loads[link] > 0:
                users.setdefault(link, []).append(number)
    groups: dict[tuple[int, ...], set[tuple[float, ...]]] = {}
    full_s = [job.communication_s for job in jobs]
    for link, who in users.items():
        if len(who) > 1:
            shares = tuple(jobs[number].loads[link] / full_s[number] for number in who)
            groups.setdefault(tuple(who), set()).add(shares)
    rows: list[list[tuple[int, float]]] = [[] for _ in jobs]
    count = 0
    for members, kinds in groups.items():
        for shares in _largest(kinds):
            for number, share in zip(members, shares, strict=True):
                rows[number].append((count, share))
            count += 1
    starts = np.cumsum([0, *(len(row) for row in rows)])
    flat = [pair for row in rows for pair in row]
    return starts, np.array([link for link, _ in flat], np.int64), np.array([share for _, share in flat]), count


def _largest(kinds: set[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Those that no other one is at least as large as, everywhere."""
    ordered = sorted(kinds, reverse=True)
    kept: list[tuple[float, ...]] = []
    for shares in ordered:
        if not any(all(mine <= its for mine, its in zip(shares, other, strict=True)) for other in kept):
            kept.append(shares)
    return kept
