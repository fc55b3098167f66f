"""Path selection from event to event: only jobs that find another load on their candidate links choose again.

Jobs choose by rank, and a job's choice depends only on the load that those before it left on its candidate links. After
an arrival or departure those jobs are visited, by rank, that have a candidate link on which they may find another load
than last time. One that finds the load of last time chooses as it did, and what it leaves is as it was. The result is
that of placing all jobs again, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import compress
from operator import is_not
from types import MappingProxyType
from typing import Final

import numpy as np

from controller.schedulers.common.arrivals import Arrivals
from controller.schedulers.common.changes import Changes, in_order
from controller.schedulers.common.meeting_places import MeetingPlaces
from controller.schedulers.common.paths_by_job import PathsByJob, paths_of
from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.path_index import FabricIndex
from controller.schedulers.crux.path_loops import Flags, Floats, Numbers
from controller.schedulers.crux.path_selection import PathAssignment, RoutableJob
from topologies.fabric import Path

Rank = tuple[float, int]
"""Less intensity and number of arrival: the smallest chooses first."""
MANY: Final = 8
"""If more than one in so many jobs came, went or changed, all are placed again."""
_GONE, _COME, _MOVED, _AGAIN = range(4)
_NO_PATHS: Final[Mapping[str, Path]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A job, the profile that ranks it, and its rank."""

    name: str
    job: RoutableJob
    profile: Profile
    rank: Rank


class IncrementalPaths:
    """The running jobs on their least loaded paths."""

    def __init__(self, index: FabricIndex, share: float = 0.0) -> None:
        """Flows keep paths in force as :func:`.least_loaded_choice` says; with a ``share`` of 0 these do not count."""
        self._index, self._share = index, share
        self._ranked: dict[str, _Ranked] = {}
        self._placements: dict[str, PathAssignment] = {}
        self._meeting = MeetingPlaces()
        self._arrivals = Arrivals()

    def follow(
        self, jobs: Changes[RoutableJob], profiles: Changes[Profile], in_force: Mapping[str, Path] = _NO_PATHS
    ) -> Changes[PathAssignment]:
        """Place the jobs, the most intensive of ``profiles`` first; job -> its placement, in the order of ``jobs``."""
        self._arrivals.follow(jobs)
        come = dict[str, _Ranked]()
        for name in jobs.now if jobs.moved else dict.fromkeys((*jobs.come, *profiles.come)):
            job, profile, known = jobs.now[name], profiles.now[name], self._ranked.get(name)
            rank = -profile.intensity, self._arrivals.number[name]
            if known is None or known.job is not job or known.profile != profile or known.rank != rank:
                come[name] = _Ranked(name, job, profile, rank)
        gone = {name: self._ranked.pop(name) for name in {**jobs.left, **come} if name in self._ranked}
        self._ranked.update(come)
        for name in gone:
            self._meeting.remove(name)
        left, placed = dict[str, PathAssignment](), dict[str, PathAssignment]()
        moved = self._moved(in_force) if self._share else []
        if MANY * (len(gone) + len(come) + len(moved)) > len(jobs.now) + MANY:
            placed = self._all_placed(come, in_force)
        elif gone or come or moved:
            placed = self._placed_again(gone, come, moved, in_force)
        placed = {name: found for name, found in placed.items() if self._placements.get(name) is not found}
        left = {name: self._placements[name] for name in (*placed, *jobs.left) if name in self._placements}
        for name in jobs.left:
            if name not in jobs.come:
                del self._placements[name]
        if len(come) > 1:
            in_order(placed, jobs.now)
        self._placements.update(placed)
        if jobs.moved:
            in_order(self._placements, jobs.now)
        return Changes(left, placed, self._placements, jobs.moved)

    def _moved(self, in_force: Mapping[str, Path]) -> list[_Ranked]:
        """The jobs that have other paths in force than those that were chosen last."""
        known = self._placements
        if isinstance(in_force, PathsByJob):
            given, chosen = in_force.by_job, (placed.paths for placed in known.values())
            others = list(compress(known, map(is_not, map(given.get, known), chosen)))
        else:
            others = list(known)
        ranked = [self._ranked[name] for name in others if name in self._ranked]
        return [each for each in ranked if not np.array_equal(_held(each, in_force), known[each.name].choice)]

    def _choose(self, ranked: _Ranked, load: Floats, in_force: Mapping[str, Path]) -> PathAssignment:
        held = _held(ranked, in_force) if self._share else None
        return ranked.job.choose(load, ranked.profile.iteration_s, held, self._share)

    def _all_placed(self, come: Mapping[str, _Ranked], in_force: Mapping[str, Path]) -> dict[str, PathAssignment]:
        load, placed = self._index.no_load(), dict[str, PathAssignment]()
        for ranked in sorted(self._ranked.values(), key=_rank_of):
            placed[ranked.name] = self._choose(ranked, load, in_force)
        for name, ranked in come.items():
            self._meeting.put(name, ranked.job.index.meeting_places)
        return placed

    def _placed_again(
        self,
        gone: Mapping[str, _Ranked],
        come: Mapping[str, _Ranked],
        moved: Iterable[_Ranked],
        in_force: Mapping[str, Path],
    ) -> dict[str, PathAssignment]:
        """Visit by rank those that have ``gone``, ``come`` or ``moved``, and those that may find another load."""
        visits, placed = _Visits(self._ranked, self._meeting, self._index), dict[str, PathAssignment]()
        for ranked in gone.values():
            visits.add(ranked, _GONE)
        for ranked in come.values():
            visits.add(ranked, _COME)
        for ranked in moved:
            if ranked.name not in come:
                visits.add(ranked, _MOVED)
        for kind, ranked, found in visits:
            if kind != _GONE:
                placed[ranked.name] = self._choose(ranked, found, in_force)
            if kind == _COME:
                self._meeting.put(ranked.name, ranked.job.index.meeting_places)
        return placed


class _Visits:
    """Visits by rank. Whoever is visited may change the load that it finds into what it leaves.

    ``_other``: whether those after the rank of the visit may find another load on a link than last time; if so,
    ``_load`` has it, which holds anything for other links.
    """

    def __init__(self, ranked: Mapping[str, _Ranked], meeting: MeetingPlaces, index: FabricIndex) -> None:
        self._ranked, self._meeting, self._index = ranked, meeting, index
        self._load = index.no_load()
        self._other: Flags = np.zeros(len(self._load), bool)
        self._waiting: list[tuple[Rank, int, _Ranked, Floats, Floats]] = []
        self._told: set[int] = set()
        self._expected: set[str] = set()

    def add(self, ranked: _Ranked, kind: int) -> None:
        """Visit ``ranked`` in its turn; what it found and left last time is remembered."""
        if kind == _MOVED:
            self._expected.add(ranked.name)
        heappush(self._waiting, (ranked.rank, kind, ranked, ranked.job.found, ranked.job.left))

    def __iter__(self) -> Iterator[tuple[int, _Ranked, Floats]]:
        """Each visit in its turn: its kind, the job, and the load, which holds what the job finds on its links."""
        load, other = self._load, self._other
        while self._waiting:
            rank, kind, ranked, found, left = heappop(self._waiting)
            links = ranked.job.index.touched
            moved = other[links]
            if kind == _COME:
                found = left = self._left_before(rank, ranked.job)
            elif moved.any():
                found = np.where(moved, load[links], found)
            elif kind == _AGAIN:
                continue
            load[links] = found
            yield kind, ranked, load
            differs = load[links] != left
            other[links] = differs | moved if kind == _COME else differs
            self._tell(rank, links[differs])

    def _left_before(self, rank: Rank, job: RoutableJob) -> Floats:
        """The load that the jobs before ``rank`` leave on the candidate links of ``job``: on each link the last one."""
        names = self._meeting.at(job.index.meeting_places)
        before = sorted((ranked for name in names if (ranked := self._ranked[name]).rank < rank), key=_rank_of)
        load = self._index.no_load()
        if before:
            links = np.concatenate([ranked.job.index.touched for ranked in before])
            load[links] = np.concatenate([ranked.job.left for ranked in before])  # of equal links the last one counts
        return load[job.index.touched]

    def _tell(self, rank: Rank, links: Numbers) -> None:
        """Expect all after ``rank`` that meet at ``links``; once told, there is nobody left to be told there."""
        places = set(self._index.meeting_place[links].tolist()) - self._told
        self._told |= places
        for name in self._meeting.at(places) - self._expected:
            if (ranked := self._ranked[name]).rank > rank:
                self._expected.add(name)
                self.add(ranked, _AGAIN)


def _held(ranked: _Ranked, in_force: Mapping[str, Path]) -> Numbers:
    return ranked.job.index.choice_of(paths_of(in_force, ranked.name))


def _rank_of(ranked: _Ranked) -> Rank:
    return ranked.rank
