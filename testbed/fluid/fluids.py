"""Jobs as fluids on links, and the arrays in which :mod:`testbed.fluid.steady_state` takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import inf
from typing import Final

import numpy as np

from testbed.fluid.maxmin import Flags, Floats, Integers
from testbed.fluid.steady_state_kernel import Users, neighbours, users_of
from workloads.periodic_job import PeriodicJob

FINEST: Final = 256
"""Iterations of a stretch that are computed one by one; more only as :meth:`Contention.bundles` of them."""
MUCH: Final = 8.0
"""Iterations that are so many times as long are no longer like each other."""


@dataclass(frozen=True, eq=False)
class Contention:
    """Jobs that share links, as arrays: what stays the same until the links, level or pause of a job change.

    ``starts`` [jobs + 1], ``links`` and ``shares`` are rows by job, as :func:`_shared_links` has them, ``count`` the
    number of links. ``times`` [jobs, 4]: compute and lead (pause included), communication, offset, in seconds.
    """

    jobs: tuple[PeriodicJob[int], ...]
    starts: Integers
    links: Integers
    shares: Floats
    count: int
    times: Floats
    levels: Integers
    weights: Floats

    @classmethod
    def of(cls, jobs: Sequence[PeriodicJob[int]]) -> Contention:
        """Return ``jobs`` as arrays."""
        times = [[j.compute_s + j.pause_s, j.lead_s + j.pause_s, j.communication_s, j.offset_s] for j in jobs]
        levels = np.array([job.level for job in jobs], np.int64)
        weights = np.array([job.gpus for job in jobs], float)
        return cls(tuple(jobs), *_shared_links(jobs), np.array(times), levels, weights)

    @cached_property
    def periods_s(self) -> Floats:
        """Seconds of an iteration of each job alone."""
        return np.array([job.period_s for job in self.jobs])

    @cached_property
    def near(self) -> tuple[Integers, Integers]:
        """Which jobs share a link, in rows by job."""
        return neighbours(self.starts, self.links, self.count)

    @cached_property
    def users(self) -> Users:
        """Which jobs use which share of a link, in rows by link."""
        return users_of(self.starts, self.links, self.shares, self.count)

    @cached_property
    def _alike(self) -> Flags:
        """[jobs, jobs]: whether two jobs share a link and have iterations of like length; true for a job itself."""
        # Not by a product of matrices: the threads of BLAS cost more than they save.
        jobs = len(self.jobs)
        rows, others = self.near
        share = np.eye(jobs, dtype=np.bool_)
        share[np.repeat(np.arange(jobs), np.diff(rows)), others] = True
        ratios = self.periods_s[:, None] / self.periods_s
        return share & (ratios < MUCH) & (ratios * MUCH > 1.0)

    def bundles(self, one_by_one: Flags, stretch_s: float) -> Floats:
        """How many iterations of each job are taken as one, so many times as long; mostly 1.

        What lies between iterations of milliseconds and of seconds does not depend on how short the short ones are,
        only on their shares of compute and communication. Jobs that share links and have like iterations are taken
        alike, so that time shifts between them stay what they are. Those that take turns on GPUs, ``one_by_one``, are
        taken so.
        """
        most = np.where(one_by_one, 0.0, stretch_s / FINEST / self.periods_s)
        while True:  # over all whom like iterations join, directly or through others
            least = np.where(self._alike, most, inf).min(axis=1)
            if np.array_equal(least, most):
                return np.maximum(1.0, np.floor(most))
            most = least


def _shared_links(jobs: Sequence[PeriodicJob[int]]) -> tuple[Integers, Integers, Floats, int]:
    """Links that several jobs use, in rows by job: starts [jobs + 1], link numbers, shares at full speed; their count.

    Of links with the same users only those matter that are not less loaded by everyone than another.
    """
    groups: dict[tuple[int, ...], set[tuple[float, ...]]] = {}
    for users, shares in _users_of_links(jobs):
        groups.setdefault(tuple(users), set()).add(tuple(shares))
    rows: list[list[tuple[int, float]]] = [[] for _ in jobs]
    count = 0
    for members, kinds in groups.items():
        for largest in _largest(kinds):
            for number, share in zip(members, largest, strict=True):
                rows[number].append((count, share))
            count += 1
    starts = np.cumsum([0, *(len(row) for row in rows)])
    flat = [pair for row in rows for pair in row]
    return starts, np.array([link for link, _ in flat], np.int64), np.array([share for _, share in flat]), count


def _users_of_links(jobs: Sequence[PeriodicJob[int]]) -> Iterable[tuple[list[int], list[float]]]:
    """Of each link that several jobs load: who, and their shares of it at full speed; in order of first users."""
    counts = [len(job.loads) for job in jobs]
    links = np.fromiter(chain.from_iterable(job.loads for job in jobs), np.int64, sum(counts))
    loads = np.fromiter(chain.from_iterable(job.loads.values() for job in jobs), float, sum(counts))
    numbers = np.repeat(np.arange(len(jobs)), counts)
    loaded = loads > 0
    several = loaded & (np.bincount(links[loaded], minlength=links.max(initial=0) + 1) > 1)[links]
    shares = loads[several] / np.array([job.communication_s for job in jobs])[numbers[several]]
    found: dict[int, tuple[list[int], list[float]]] = {}
    for link, number, share in zip(links[several].tolist(), numbers[several].tolist(), shares.tolist(), strict=True):
        users = found.setdefault(link, ([], []))
        users[0].append(number)
        users[1].append(share)
    return found.values()


def _largest(kinds: set[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Those that no other one is at least as large as, everywhere."""
    ordered = sorted(kinds, reverse=True)
    kept: list[tuple[float, ...]] = []
    for shares in ordered:
        if not any(all(mine <= its for mine, its in zip(shares, other, strict=True)) for other in kept):
            kept.append(shares)
    return kept
