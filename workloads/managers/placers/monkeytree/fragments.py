"""Jobs as numbers of GPUs under each ToR, and where a job may go if no ToR is to have too many fragments.

A fragment of a job under a ToR is what it has there while it has GPUs elsewhere, too: only fragments send through the
ToR's uplinks. MonkeyTree bounds their number per ToR: the jobs present under a ToR less the jobs that are only there
are at most lambda (its constraint ``sum x - sum y <= lambda``). With lambda 2 there is always a placement of all jobs
that fit: laid out one behind the other, a ToR shares at most one job with the ToR before it and one with the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

ToRs = Mapping[int, int]
"""ToR -> GPUs of a job under it, at least 1."""

MOST_TRIED: Final = 400
"""Sets of jobs that are tried when GPUs have to be cleared for a job."""


@dataclass(frozen=True, slots=True)
class Racks:
    """The cluster as MonkeyTree sees it."""

    free: tuple[int, ...]
    """Free GPUs under each ToR."""
    jobs: Mapping[str, ToRs]
    """Running job -> where it is."""
    most: int = 2
    """Fragments allowed under a ToR: lambda."""

    def fragments(self, tor: int) -> int:
        """Jobs that are under ``tor`` and elsewhere, too."""
        return sum(tor in where and len(where) > 1 for where in self.jobs.values())

    def without(self, job: str) -> Racks:
        """The same without a job."""
        where = self.jobs[job]
        free = tuple(count + where.get(tor, 0) for tor, count in enumerate(self.free))
        return Racks(free, {name: each for name, each in self.jobs.items() if name != job}, self.most)

    def having(self, job: str, where: ToRs) -> Racks:
        """The same with a job more."""
        free = tuple(count - where.get(tor, 0) for tor, count in enumerate(self.free))
        return Racks(free, {**self.jobs, job: where}, self.most)


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a job goes, and which others move first."""

    where: ToRs
    moves: tuple[tuple[str, ToRs], ...] = ()
    """In order: each finds its GPUs free when those before it have moved."""


def bounded(racks: Racks, gpus: int) -> ToRs | None:
    """Return where ``gpus`` GPUs may go without a fragment too many under any ToR; None if nowhere.

    One ToR where it fits, the tightest; else as few ToRs as possible, the roomiest of those that may have a fragment
    more, and the last of them the tightest that takes what is left.
    """
    alone = [tor for tor, count in enumerate(racks.free) if count >= gpus]
    if alone:
        return {min(alone, key=lambda tor: (racks.free[tor], tor)): gpus}
    may = [tor for tor, count in enumerate(racks.free) if count > 0 and racks.fragments(tor) < racks.most]
    may.sort(key=lambda tor: (-racks.free[tor], tor))
    found: dict[int, int] = {}
    left = gpus
    for tor in may:
        if racks.free[tor] >= left:
            fitting = [other for other in may if other not in found and racks.free[other] >= left]
            found[min(fitting, key=lambda other: (racks.free[other], other))] = left
            return found
        found[tor] = racks.free[tor]
        left -= racks.free[tor]
    return None


def plan(racks: Racks, gpus: int) -> Plan | None:
    """Return where ``gpus`` GPUs go, with the fewest GPUs of other jobs moved that were found to make it possible.

    No other job, one, or two move; None if that is not enough. The authors solve an integer programme; here sets of
    jobs are tried in the order of their GPUs, at most :data:`MOST_TRIED`.
    """
    direct = bounded(racks, gpus)
    if direct is not None:
        return Plan(direct)
    if sum(racks.free) < gpus:
        return None
    for tried, movers in enumerate(_by_cost(racks)):
        if tried >= MOST_TRIED:
            return None
        found = _with_moves(racks, gpus, movers)
        if found is not None:
            return found
    return None


def _by_cost(racks: Racks) -> Iterator[tuple[str, ...]]:
    """One or two running jobs to move, those with fewer GPUs first; of equal ones those that started first."""
    sizes = {job: sum(where.values()) for job, where in racks.jobs.items()}
    movers: list[tuple[str, ...]] = [(job,) for job in sizes]
    few = sorted(sizes, key=lambda job: sizes[job])[:30]
    movers += [pair for one, other in combinations(few, 2) for pair in ((one, other), (other, one))]
    place = {job: number for number, job in enumerate(sizes)}
    return iter(sorted(movers, key=lambda those: (sum(sizes[job] for job in those), [place[job] for job in those])))


def _with_moves(racks: Racks, gpus: int, movers: Sequence[str]) -> Plan | None:
    moves: list[tuple[str, ToRs]] = []
    for job in movers:
        before = racks.jobs[job]
        left = racks.without(job)
        there = _elsewhere(left, before)
        if there is None:
            return None
        racks = left.having(job, there)
        moves.append((job, there))
    where = bounded(racks, gpus)
    return None if where is None else Plan(where, tuple(moves))


def _elsewhere(racks: Racks, before: ToRs) -> ToRs | None:
    """Another bounded place for a job that was at ``before``: one ToR if there is one, else fewest."""
    size = sum(before.values())
    found = bounded(racks, size)
    if found is not None and dict(found) != dict(before):
        return found
    hidden = tuple(0 if tor in before else count for tor, count in enumerate(racks.free))
    return bounded(Racks(hidden, racks.jobs, racks.most), size)
