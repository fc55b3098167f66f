"""The running jobs from event to event: as arrays, on their paths, with what follows from these."""

from __future__ import annotations

from collections.abc import Mapping

from controller.schedulers.common.changes import changes
from controller.schedulers.crux.chosen_paths import ChosenPaths
from controller.schedulers.crux.incremental_levels import IncrementalLevels
from controller.schedulers.crux.incremental_paths import IncrementalPaths
from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.kept.priorities import KeptPriorities
from controller.schedulers.crux.path_index import FabricIndex
from controller.schedulers.crux.path_selection import PathAssignment, RoutableJob
from topologies.fabric import Fabric
from workloads.job import Job


class KeptJobs:
    """What later calls need not recompute: arrays, placements, factors, and the levels of contending jobs.

    Mappings are by job, in the order of the running jobs. They change with the next call.
    """

    def __init__(self, fabric: Fabric, clamp: float) -> None:
        self.index = FabricIndex.of(fabric)
        self._running: dict[str, Job] = {}
        self._incremental = IncrementalPaths(self.index)
        self.priorities = KeptPriorities(clamp)
        self.parts = IncrementalLevels()
        self.jobs: dict[str, RoutableJob] = {}
        self.alone: dict[str, Profile] = {}
        """Profiles over the host links."""
        self.placed: Mapping[str, PathAssignment] = {}
        self.paths: dict[str, ChosenPaths] = {}
        self.senders: dict[str, Profile] = {}
        """Profiles over the assigned links, of the jobs that send."""
        self.used: dict[str, frozenset[int]] = {}
        """Links of the jobs that send."""

    def follow_jobs(self, running: Mapping[str, Job]) -> Mapping[str, RoutableJob]:
        """Let ``running`` be the jobs; return them as arrays."""
        changed = changes(self._running, running)
        self._running = dict(running)
        changed.carry(self.jobs, lambda job: RoutableJob(self.index.job(job)))
        changed.carry(self.alone, lambda job: self.jobs[job.name].index.alone)
        return self.jobs

    def placements(self, before: Mapping[str, Profile]) -> Mapping[str, PathAssignment]:
        """The jobs on their least loaded paths; ``before``: their profiles before paths are known."""
        return self._incremental.follow(self.jobs, before)

    def hashed(self, seed: int) -> Mapping[str, PathAssignment]:
        """The jobs on their ECMP paths."""
        return {name: job.hashed(seed) for name, job in self.jobs.items()}

    def follow_placements(self, placed: Mapping[str, PathAssignment]) -> None:
        """Let ``placed`` be where the jobs are."""
        changed = changes(self.placed, placed)
        if not changed:
            return
        self.placed = placed
        changed.carry(self.paths, lambda placed: placed.paths)
        in_order = all(
            (name in self.senders) == placed[name].profile.communicates for name in changed.left if name in placed
        )
        if changed.moved or not in_order:
            senders = {name: each for name, each in placed.items() if each.profile.communicates}
            self.senders = {name: each.profile for name, each in senders.items()}
            self.used = {name: each.used for name, each in senders.items()}
            return
        for name in changed.left.keys() - changed.come.keys() & self.senders.keys():
            del self.senders[name], self.used[name]
        for name, each in changed.come.items():
            if each.profile.communicates:
                self.senders[name], self.used[name] = each.profile, each.used
