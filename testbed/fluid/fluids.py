"""Jobs as fluids on links, and the arrays in which :mod:`testbed.fluid.steady_state` takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Final

import numpy as np

from testbed.fluid.maxmin import Flags, Floats, Integers
from testbed.fluid.shared_links import Users, neighbours, shared_rows, users_of
from workloads.periodic_job import PeriodicJob

FINEST: Final = 20
"""Iterations that are computed one by one while the slowest job makes one; more only as :meth:`Contention.bundles`."""
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
    def of(cls, jobs: Sequence[PeriodicJob[int]], loads: Sequence[tuple[Integers, Floats]] = ()) -> Contention:
        """Return ``jobs`` as arrays; ``loads``, where known already: the links and seconds of each."""
        times = [[j.compute_s + j.pause_s, j.lead_s + j.pause_s, j.communication_s, j.offset_s] for j in jobs]
        levels = np.array([job.level for job in jobs], np.int64)
        weights = np.array([job.gpus for job in jobs], float)
        return cls(
            tuple(jobs),
            *_shared_links(jobs, loads or [_loads_of(job) for job in jobs]),
            np.array(times),
            levels,
            weights,
        )

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

    def bundles(self, one_by_one: Flags) -> Floats:
        """How many iterations of each job are taken as one, so many times as long; mostly 1.

        What lies between iterations of milliseconds and of seconds does not depend on how short the short ones are,
        only on their shares of compute and communication. Jobs that share links and have like iterations are taken
        alike, so that time shifts between them stay what they are. Those that take turns on GPUs, ``one_by_one``, are
        taken so.
        """
        most = np.where(one_by_one, 0.0, self.periods_s.max() / FINEST / self.periods_s)
        if most.max() < 2.0:
            return np.ones(len(most))
        while True:  # over all whom like iterations join, directly or through others
            least = np.where(self._alike, most, inf).min(axis=1)
            if np.array_equal(least, most):
                return np.maximum(1.0, np.floor(most))
            most = least


def _loads_of(job: PeriodicJob[int]) -> tuple[Integers, Floats]:
    count = len(job.loads)
    return np.fromiter(job.loads, np.int64, count), np.fromiter(job.loads.values(), float, count)


def _shared_links(
    jobs: Sequence[PeriodicJob[int]], loads: Sequence[tuple[Integers, Floats]]
) -> tuple[Integers, Integers, Floats, int]:
    """Links that several jobs use, in rows by job: starts [jobs + 1], link numbers, shares at full speed; their count.

    Of links with the same users only those matter that are not less loaded by everyone than another.
    """
    links = np.concatenate([links for links, _ in loads])
    parts = np.concatenate(
        [seconds / (job.communication_s or 1.0) for job, (_, seconds) in zip(jobs, loads, strict=True)]
    )
    numbers = np.repeat(np.arange(len(jobs)), [len(links) for links, _ in loads])
    order = np.argsort(links, kind="stable")
    kept, count = shared_rows(links[order], numbers[order], parts[order], len(jobs))
    rows = kept[np.lexsort((kept[:, 1], kept[:, 0]))]
    starts = np.searchsorted(rows[:, 0], np.arange(len(jobs) + 1))
    return starts, rows[:, 1].astype(np.int64), rows[:, 2].copy(), count
