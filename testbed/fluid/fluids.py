"""Jobs as fluids on links, and the arrays in which :mod:`testbed.fluid.steady_state` takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testbed.fluid.bundles import bundle_sizes
from testbed.fluid.maxmin import Flags, Floats, Integers
from testbed.fluid.shared_links import SharedLinks, neighbours, rows_by_job
from workloads.periodic_job import PeriodicJob


@dataclass(frozen=True, eq=False)
class Contention:
    """Jobs that share links, as arrays: what stays the same until the links, level or pause of a job change.

    ``starts`` [jobs + 1], ``links`` and ``shares`` are rows by job, as :func:`.rows_by_job` has them, ``count`` the
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
    def of(cls, jobs: Sequence[PeriodicJob[int]], shared: SharedLinks | None = None) -> Contention:
        """Return ``jobs`` as arrays; ``shared``, where known already: the links that several of them use."""
        times = [[j.compute_s + j.pause_s, j.lead_s + j.pause_s, j.communication_s, j.offset_s] for j in jobs]
        levels = np.array([job.level for job in jobs], np.int64)
        weights = np.array([job.gpus for job in jobs], float)
        return cls(tuple(jobs), *(shared or _shared_links(jobs)), np.array(times), levels, weights)

    @cached_property
    def periods_s(self) -> Floats:
        """Seconds of an iteration of each job alone."""
        return np.array([job.period_s for job in self.jobs])

    def bundles(self, one_by_one: Flags) -> Floats:
        """How many iterations of each job are taken as one (:func:`.bundles.bundle_sizes`)."""
        return bundle_sizes(self.periods_s, one_by_one, neighbours(self.starts, self.links, self.count))


def _loads_of(job: PeriodicJob[int]) -> tuple[Integers, Floats]:
    count = len(job.loads)
    return np.fromiter(job.loads, np.int64, count), np.fromiter(job.loads.values(), float, count)


def _shared_links(jobs: Sequence[PeriodicJob[int]]) -> SharedLinks:
    """The links that several of ``jobs`` use."""
    loads = [_loads_of(job) for job in jobs]
    parts = [seconds / (job.communication_s or 1.0) for job, (_, seconds) in zip(jobs, loads, strict=True)]
    numbers = np.repeat(np.arange(len(jobs)), [len(links) for links, _ in loads])
    return rows_by_job(np.concatenate([links for links, _ in loads]), numbers, np.concatenate(parts), len(jobs))
