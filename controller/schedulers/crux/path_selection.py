"""Path selection of Crux (section 4.1): intensive jobs choose first, each flow the least loaded path.

A job's choice depends only on the load on its candidate links, so the last choice is reused where
that load is the same to the last bit: after an arrival or departure only the jobs with a changed
load choose again, and the result is the same as if all jobs chose again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.path_index import FabricIndex, FlowBatch, JobIndex
from controller.schedulers.crux.path_loops import Flags, Floats, Numbers
from topologies.fabric import Fabric, Path
from workloads.job import Job

MOST_KNOWN: Final = 16
"""Placements that are kept of a job; all are forgotten when there are more."""


class PathAssignment:
    """A job on the paths of ``choice`` (flow -> candidate): by name, by number, and what follows from them."""

    def __init__(self, job: JobIndex, choice: Numbers) -> None:
        self.choice = choice
        self.paths = job.paths(choice)
        links = self.paths.links
        self.profile: Profile = job.profile(links)
        used = np.concatenate((links[:, job.bytes > 0].ravel(), job.pcie))
        self.used = frozenset(used[used < job.index.absent].tolist())
        """The links the job sends over, by number: those of its paths, and PCIe switch to NIC at both ends."""


class RoutableJob:
    """An indexed job and its last choice, with the load and period that led to it."""

    def __init__(self, job: JobIndex) -> None:
        self.index = job
        self._placement: PathAssignment | None = None
        self._known: dict[bytes, PathAssignment] = {}
        self._period_s: float | None = None
        self._in_force = b""
        self.found: Floats = np.empty(0)
        """The load on :attr:`.JobIndex.touched` that the last choice found."""
        self.left: Floats = np.empty(0)
        """That which it left there."""
        self._hashed: dict[int, Numbers] = {}

    def hashed(self, seed: int) -> PathAssignment:
        """Return the job on its ECMP paths."""
        if seed not in self._hashed:
            self._hashed = {seed: self.index.hashed_choice(seed)}
        return self.at(self._hashed[seed])

    def at(self, choice: Numbers) -> PathAssignment:
        """Return the job on ``choice``: often one that it had not long ago."""
        key = choice.tobytes()
        placement = self._known.get(key)
        if placement is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            placement = self._known[key] = PathAssignment(self.index, choice)
        self._placement = placement
        return placement

    def choose(
        self, load: Floats, period_s: float, in_force: Numbers | None = None, share: float = 0.0
    ) -> PathAssignment:
        """Place the flows as :func:`least_loaded_choice` does and add them to ``load`` (share of capacity per link)."""
        touched = self.index.touched
        found = load[touched]
        if self._placement is not None and self._chose_on(found, period_s, in_force):
            load[touched] = self.left
            return self._placement
        placement = self.at(least_loaded_choice(self.index, load, period_s, in_force, share))
        self._in_force = b"" if in_force is None else in_force.tobytes()
        self._period_s, self.found, self.left = period_s, found, load[touched]
        return placement

    def _chose_on(self, found: Floats, period_s: float, in_force: Numbers | None) -> bool:
        """Whether the last choice follows from this, too: what was chosen once stays on the same load."""
        if self._placement is None or self._period_s != period_s or not bool((self.found == found).all()):
            return False
        return in_force is None or in_force.tobytes() in (self._placement.choice.tobytes(), self._in_force)


def least_loaded_choice(
    job: JobIndex, load: Floats, period_s: float, in_force: Numbers | None = None, share: float = 0.0
) -> Numbers:
    """Return flow -> candidate, each flow the path with the smallest (maximum, sum) of ``load``; adds to ``load``.

    The lowest index wins a tie. ``load`` is per link its bits per second over its capacity; a flow adds
    its bytes over ``period_s``, the iteration of its job alone. Where the candidates of a flow differ in capacity, the
    flow's own load counts as well: an idle link of 10 Gb/s is not as good as an idle one of 100 Gb/s.
    A flow keeps the candidate ``in_force`` (-1 for none) if that one's most loaded link, with the flow, is loaded at
    most (1 + ``share``) times as much as the least that any candidate has.
    """
    choice = np.full(len(job.bytes), -1, np.intp) if in_force is None else in_force.copy()
    rates = job.bytes / period_s * 8 if period_s > 0 else np.zeros(len(job.bytes))
    capacity = job.index.capacity
    if (loops := job.index.loops) is not None:
        loops.least_loaded(job.table, job.unlike, load, rates, capacity, choice, 1 + share)
        return choice
    for batch in job.batches:
        loads = load.take(batch.candidates)
        stay = None if in_force is None else _staying(batch, loads, rates, capacity, in_force, 1 + share)
        if len(batch.unlike):
            own = rates.take(batch.flows[batch.unlike])[None, :, None]
            loads[:, batch.unlike] += own / capacity.take(batch.candidates[:, batch.unlike])
        largest = np.maximum.reduce(loads)
        sums = _sum_in_order(loads)
        sums[largest != np.minimum.reduce(largest, axis=1, keepdims=True)] = np.inf
        taken = sums.argmin(axis=1)
        if stay is not None and in_force is not None:
            taken = np.where(stay, in_force[batch.flows], taken)
        links = batch.candidates[:, np.arange(len(taken)), taken]
        load[links] += rates.take(batch.flows) / capacity.take(links)
        choice[batch.flows] = taken
    return choice


def _staying(
    batch: FlowBatch, loads: Floats, rates: Floats, capacity: Floats, in_force: Numbers, slack: float
) -> Flags:
    """Flow of ``batch`` -> whether it stays on its candidate in force."""
    held = in_force[batch.flows]
    most = np.maximum.reduce(loads + rates.take(batch.flows)[None, :, None] / capacity.take(batch.candidates))
    light: Flags = most[np.arange(len(held)), held] <= slack * np.minimum.reduce(most, axis=1)
    return light & (held >= 0)


def _sum_in_order(loads: Floats) -> Floats:
    """Sums over the hops, the first hop first: how it is added up must not depend on the number of flows."""
    total: Floats = loads[0].copy()
    for hop in loads[1:]:
        total += hop
    return total


def select_paths(fabric: Fabric, jobs: Sequence[Job], iteration_s: Mapping[str, float]) -> dict[str, Path]:
    """Return flow id -> path, the jobs placed in the given order (highest intensity first).

    Of a flow's candidates the one with the smallest (largest load / capacity on it, then their
    sum) is taken, the lowest index on a tie. Load is in bytes per second: a flow's bytes over
    ``iteration_s`` of its job alone. The flow's own load is included where its candidates differ in capacity.
    """
    index = FabricIndex(fabric)
    load = index.no_load()
    paths: dict[str, Path] = {}
    for job in jobs:
        paths |= RoutableJob(JobIndex(job, index)).choose(load, iteration_s[job.name]).paths
    return paths


def least_loaded(candidates: Sequence[Path], load: Mapping[str, float], own: Mapping[str, float] | None = None) -> Path:
    """Return the first of ``candidates`` with the smallest (maximum, sum) of ``load`` over its links.

    ``own``: link -> what the flow would add to it, where that is to count.
    """
    best, best_cost = candidates[0], (float("inf"), float("inf"))
    for path in candidates:
        loads = [load.get(link, 0.0) + (own[link] if own else 0.0) for link in path]
        cost = (max(loads), sum(loads))
        if cost < best_cost:
            best, best_cost = path, cost
    return best
