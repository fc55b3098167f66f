"""The running jobs from event to event: as arrays, on their paths, with what follows from these."""

from __future__ import annotations

from collections.abc import Mapping

from controller.schedulers.common.changes import Changes, changes
from controller.schedulers.crux.chosen_paths import ChosenPaths
from controller.schedulers.crux.incremental_levels import IncrementalLevels
from controller.schedulers.crux.incremental_paths import IncrementalPaths
from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.kept.priorities import KeptPriorities
from controller.schedulers.crux.path_index import FabricIndex
from controller.schedulers.crux.path_selection import PathAssignment, RoutableJob
from topologies.fabric import Fabric, Path
from workloads.job import Job


class KeptJobs:
    """What later calls need not recompute: arrays, placements, factors, and the levels of contending jobs.

    Mappings are by job, in the order of the running jobs. They change with the next call.
    """

    def __init__(self, fabric: Fabric, clamp: float, steady_paths: float = 0.0, *, declared: bool = True) -> None:
        """``steady_paths``: the share by which a path in force may be worse; 0 if paths in force do not count.

        ``declared``: whether profiles are the declared ones; if not, :meth:`measure` says what they are.
        """
        self._declared = declared
        self.index = FabricIndex.of(fabric)
        self.priorities = KeptPriorities(clamp)
        self.parts = IncrementalLevels()
        self.jobs: dict[str, RoutableJob] = {}
        self.alone: dict[str, Profile] = {}
        """Profiles over the host links."""
        self.placed: Mapping[str, PathAssignment] = {}
        self.paths: dict[str, ChosenPaths] = {}
        self.senders: Changes[Profile]
        """Profiles over the assigned links, of the jobs that send."""
        self.used: Changes[frozenset[int]]
        """Links of the jobs that send."""
        self._running: dict[str, Job] = {}
        self._before: dict[str, Profile] = {}
        self._sending: dict[str, PathAssignment] = {}
        self._profiles: dict[str, Profile] = {}
        self._used: dict[str, frozenset[int]] = {}
        self._incremental = IncrementalPaths(self.index, steady_paths)

    def follow(self, running: Mapping[str, Job]) -> None:
        """Let ``running`` be the jobs: :attr:`jobs` and :attr:`alone` follow."""
        changed = changes(self._running, running)
        self._running = dict(running)
        self._jobs_changed = changed.carry(self.jobs, lambda job: RoutableJob(self.index.job(job)))
        self._alone_changed = self._jobs_changed.carry(self.alone, lambda job: job.index.alone)

    def place(self, before: Mapping[str, Profile], in_force: Mapping[str, Path]) -> None:
        """Put the jobs on their least loaded paths; ``before``: their profiles as known before paths are."""
        if before is self.alone:
            profiles = self._alone_changed
        else:
            profiles, self._before = changes(self._before, before), dict(before)
        self._follow_placed(self._incremental.follow(self._jobs_changed, profiles, in_force))

    def place_hashed(self, seed: int) -> None:
        """Put the jobs on their ECMP paths."""
        self._follow_placed(changes(self.placed, {name: job.hashed(seed) for name, job in self.jobs.items()}))

    def _follow_placed(self, changed: Changes[PathAssignment]) -> None:
        self.placed = changed.now
        changed.carry(self.paths, lambda placed: placed.paths)
        if self._declared:
            sending = changed.among(self._sending, lambda placed: placed.profile.communicates)
            self.senders = sending.carry(self._profiles, lambda placed: placed.profile)
            self.used = sending.carry(self._used, lambda placed: placed.used)

    def measure(self, profiles: Mapping[str, Profile]) -> None:
        """Let ``profiles`` be those of the jobs that send, measured or declared, in place of the declared ones."""
        known = self._profiles
        self._profiles = {name: known[name] if known.get(name) == found else found for name, found in profiles.items()}
        self.senders = changes(known, self._profiles)
        known_used, self._used = self._used, {name: self.placed[name].used for name in profiles}
        self.used = changes(known_used, self._used)
