"""Path selection from event to event: only jobs whose links may have another load choose again.

A job's choice depends only on the load on its candidate links, and that only on jobs that share one with
it. So after an arrival or departure the jobs to be placed again are those that shared candidates connect,
directly or through others, with a job that came, went or changed; the result is that of placing all jobs again.
"""

from __future__ import annotations

from collections.abc import Mapping

from controller.schedulers.common.link_sharing import LinkSharing
from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.path_index import FabricIndex
from controller.schedulers.crux.path_selection import PathAssignment, RoutableJob


class IncrementalPaths:
    """The running jobs on their least loaded paths."""

    def __init__(self, index: FabricIndex) -> None:
        self._load = index.no_load()
        self._meeting = LinkSharing()
        self._known: dict[str, tuple[RoutableJob, Profile]] = {}
        self._placements: dict[str, PathAssignment] = {}

    def follow(self, jobs: Mapping[str, RoutableJob], profiles: Mapping[str, Profile]) -> dict[str, PathAssignment]:
        """Return job -> its placement, the most intensive of ``profiles`` placed first; in the order of ``jobs``."""
        affected = self._met_by_those_gone(jobs)
        for name, job in jobs.items():
            profile, known = profiles[name], self._known.get(name)
            if known is None or (known[1] is not profile and known[1] != profile):
                self._known[name] = job, profile
                self._meeting.put(name, job.index.meeting_places)
                affected.add(name)
        for joined in self._meeting.joined(affected):
            self._place(joined)
        return {name: self._placements[name] for name in jobs}

    def _met_by_those_gone(self, jobs: Mapping[str, RoutableJob]) -> set[str]:
        """Remove the jobs that left or changed; return the other jobs that may share a link with them."""
        gone = [name for name, (job, _) in self._known.items() if jobs.get(name) is not job]
        met = {other for name in gone for other in self._meeting.beside(name)}
        for name in gone:
            self._meeting.remove(name)
            del self._known[name], self._placements[name]
        return met.difference(gone)

    def _place(self, joined: set[str]) -> None:
        """Place jobs that share no link with other jobs, on links without load; reset the load afterwards."""
        for name in sorted(joined, key=lambda name: (-self._known[name][1].intensity, name)):
            job, profile = self._known[name]
            self._placements[name] = job.choose(self._load, profile.iteration_s)
        for name in joined:
            self._load[self._known[name][0].index.touched] = 0.0
