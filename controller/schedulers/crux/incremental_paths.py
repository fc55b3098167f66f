"""Path selection from event to event: only jobs whose links may have another load choose again.

A job's choice depends only on the load on its candidate links, and that only on jobs that share one with
it. So after an arrival or departure the jobs to be placed again are those that shared candidates connect,
directly or through others, with a job that came, went or changed. Jobs choose by rank, so even of those only the ones
from the first changed rank on choose again. The result is that of placing all jobs again, to the last bit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from controller.schedulers.common.meeting_places import MeetingPlaces
from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.path_index import FabricIndex
from controller.schedulers.crux.path_selection import PathAssignment, RoutableJob

Rank = tuple[float, str]
"""Less intensity and name: the smallest chooses first."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A job, and the profile that ranks it."""

    job: RoutableJob
    profile: Profile

    @property
    def rank(self) -> Rank:
        return -self.profile.intensity, self.profile.job


class IncrementalPaths:
    """The running jobs on their least loaded paths, and the load of them all."""

    def __init__(self, index: FabricIndex) -> None:
        self._load = index.no_load()
        self._meeting = MeetingPlaces()
        self._placed: dict[str, _Ranked] = {}
        self._placements: dict[str, PathAssignment] = {}

    def follow(self, jobs: Mapping[str, RoutableJob], profiles: Mapping[str, Profile]) -> dict[str, PathAssignment]:
        """Return job -> its placement, the most intensive of ``profiles`` placed first; in the order of ``jobs``."""
        gone = {name: ranked for name, ranked in self._placed.items() if jobs.get(name) is not ranked.job}
        changed = {
            name: _Ranked(job, profiles[name])
            for name, job in jobs.items()
            if (known := self._placed.get(name)) is None
            or name in gone
            or (known.profile is not profiles[name] and known.profile != profiles[name])
        }
        if gone or changed:
            before = [self._placed[name].rank for name in {**gone, **changed} if name in self._placed]
            first = min(*before, *(ranked.rank for ranked in changed.values()), (float("inf"), ""))
            affected = self._affected(gone, changed)
            self._withdraw(first, affected.union(gone))
            for name in gone:
                del self._placed[name], self._placements[name]
            self._placed.update(changed)
            self._place(first, affected)
        return {name: self._placements[name] for name in jobs}

    def _affected(self, gone: Collection[str], changed: Mapping[str, _Ranked]) -> set[str]:
        """Bring the jobs that may share links up to date; return those that may share one with a changed job."""
        left: set[int] = set()
        for name in gone:
            left |= self._meeting.remove(name)
        for name, ranked in changed.items():
            if name in gone or name not in self._placed:
                self._meeting.put(name, ranked.job.index.meeting_places)
        return self._meeting.joined(changed, left)

    def _withdraw(self, first: Rank, names: Collection[str]) -> None:
        """Take those from rank ``first`` on off the load, the last one first: each restores the load that it found."""
        placed = [self._placed[name] for name in names if name in self._placed]
        for ranked in sorted(placed, key=lambda ranked: ranked.rank, reverse=True):
            if ranked.rank < first:
                return
            ranked.job.withdraw(self._load)

    def _place(self, first: Rank, names: Collection[str]) -> None:
        """Let those from rank ``first`` on choose on the load of those before them."""
        ranks = {name: self._placed[name].rank for name in names}
        for name in sorted((name for name in names if ranks[name] >= first), key=ranks.__getitem__):
            ranked = self._placed[name]
            self._placements[name] = ranked.job.choose(self._load, ranked.profile.iteration_s)
