"""Crux (SIGCOMM'24, section 4): path selection, priority assignment and compression by GPU intensity."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf
from typing import ClassVar, Final

from controller.decision import ClusterView, Decision, Event, JobProfiled, Scheduler, ThroughputMeasured
from controller.schedulers.common.paths_by_job import PathsByJob
from controller.schedulers.common.stable_levels import kept_levels
from controller.schedulers.crux.compression import first_levels_own
from controller.schedulers.crux.intensity import Profile, measured_profile, shared_nic_links
from controller.schedulers.crux.kept.jobs import KeptJobs
from controller.schedulers.crux.online_profile import unknown_profile
from controller.schedulers.crux.path_selection import RoutableJob
from controller.schedulers.crux.priority import CLAMP, blended_with_loss, reordered
from controller.schedulers.crux.source_ports import Wanted, source_ports
from topologies.fabric import Fabric

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "profile": ("declared", "measured"),
    "arrival": ("recompute", "profile"),
    "enforcement": ("rules", "ports"),
    "pcie": ("queue", "semaphore"),
}
HIGHEST: Final = 0
FAIRNESS_EVERY_S: Final = 10.0
"""Seconds after which jobs that lost throughput are looked for again."""
MEASURED_WORK: Final = "busy GPU seconds of an iteration as measured, times the declared FLOP/s of a busy GPU"
"""What a measured W rests on: workers stand in for GPUs, and a pause executes no operations that could be counted."""
STEADY: Final = 0.01
"""Share of the best cut's weight that levels in force may miss and stay."""


class Crux(Scheduler):
    """The mechanisms of Crux, each of which can be switched.

    ``paths`` False leaves flows on their ECMP paths; ``priorities`` False leaves all jobs at the
    default level; ``compression`` False gives the first K - 1 jobs a level each and the rest the last.
    ``profile`` "measured" takes W_j, t_j and the iteration from the view's measurements where there are
    any. ``clamp`` c keeps the factors k_j of priorities between 1 / c and c; 1 leaves the order to
    intensity. ``arrival`` "profile" keeps the highest level for jobs that are being profiled (section 5), takes nothing
    from their declared profiles but the bytes of their flows, and measured profiles after.
    ``fairness`` 0 to 1 blends priorities with recent loss of throughput (section 7.2). ``enforcement``
    "ports" also gives every flow a source port that hashes to its path (section 5). ``pcie`` "semaphore"
    lets a job wait at its senders while one of a higher level uses the same PCIe link (section 5); "queue"
    leaves those links to the strict priority of their queues, which wastes nothing of them.
    ``steady`` is the share of the best cut's weight that levels in force may miss and stay. ``steady_paths`` is the
    share by which the most loaded link of a path in force may be more loaded than that of the best path, and the flow
    stays; 0 chooses all paths as if from nothing.

    What is kept between calls (jobs as arrays, their last paths and levels) never changes a result.
    """

    name: ClassVar[str] = "crux"
    summary: ClassVar[str] = "paths and levels by GPU intensity, priorities compressed by a maximum K-cut"
    decides: ClassVar[tuple[str, ...]] = ("paths", "levels")
    source: ClassVar[str] = "Cao et al., SIGCOMM 2024, sections 4 and 5"

    def __init__(
        self,
        *,
        paths: bool = True,
        priorities: bool = True,
        compression: bool = True,
        profile: str = "declared",
        arrival: str = "recompute",
        fairness: float = 0.0,
        enforcement: str = "rules",
        pcie: str = "queue",
        clamp: float = CLAMP,
        steady: float = STEADY,
        steady_paths: float = 0.0,
    ) -> None:
        for option, value in (("paths", paths), ("priorities", priorities), ("compression", compression)):
            if not isinstance(value, bool):
                raise ValueError(f"option '{option}' of {self.name} must be true or false, not '{value}'")
        words = (("profile", profile), ("arrival", arrival), ("enforcement", enforcement), ("pcie", pcie))
        for option, word in words:
            if word not in _CHOICES[option]:
                expected = " or ".join(_CHOICES[option])
                raise ValueError(f"option '{option}' of {self.name} must be {expected}, not '{word}'")
        for option, number in (("fairness", fairness), ("steady", steady), ("steady_paths", steady_paths)):
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
                raise ValueError(f"option '{option}' of {self.name} must be a number from 0 to 1, not '{number}'")
        if isinstance(clamp, bool) or not isinstance(clamp, int | float) or not 1 <= clamp < inf:
            raise ValueError(f"option 'clamp' of {self.name} must be a number of at least 1, not '{clamp}'")
        self._clamp = float(clamp)
        self._paths, self._priorities, self._compression = paths, priorities, compression
        self._profiles_first = arrival == "profile"
        self._measured = profile == "measured" or self._profiles_first
        self._fairness, self._ports = float(fairness), enforcement == "ports"
        self._semaphores = pcie == "semaphore"
        self._steady, self._steady_paths = float(steady), float(steady_paths)
        if self._measured:
            self.events = self.events | {JobProfiled}
        if self._fairness:
            self.events, self.every_s = self.events | {ThroughputMeasured}, FAIRNESS_EVERY_S
        self._kept: KeptJobs | None = None

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return paths for all flows, and levels for all jobs that share a link with another."""
        kept = self._kept_for(view.fabric)
        self._kept = None  # unless all goes well
        decision = self._decide(view, kept)
        self._kept = kept
        return decision

    def _decide(self, view: ClusterView, kept: KeptJobs) -> Decision:
        kept.follow(view.jobs)
        waiting = view.profiling if self._profiles_first else frozenset[str]()
        before: Mapping[str, Profile] = kept.alone
        if self._measured:
            before = {name: self._profile_of(view, kept.jobs[name], found, waiting) for name, found in before.items()}
        if self._paths:
            kept.place(before, view.decision.paths)
        else:
            kept.place_hashed(view.seed)
        if self._measured:
            declared = ((name, placed.profile) for name, placed in kept.placed.items() if name not in waiting)
            profiles = {name: self._profile_of(view, kept.jobs[name], found) for name, found in declared}
            kept.measure({name: found for name, found in profiles.items() if found.communicates})
        kept.priorities.follow(kept.senders)
        priorities = blended_with_loss(kept.priorities.priorities, view.throughput, self._fairness)
        levels = self._assign_levels(view, kept, priorities) if self._priorities else {}
        return Decision(
            paths=PathsByJob(dict(kept.paths)),
            levels=levels,
            notes=self._notes(view, kept, priorities) if view.keeps_notes else {},
            ports=self._source_ports(view, kept) if self._ports else {},
            exclusive=shared_nic_links(view.jobs.values(), view.fabric) if self._semaphores else (),
        )

    def _kept_for(self, fabric: Fabric) -> KeptJobs:
        if self._kept is None or self._kept.index.fabric is not fabric:
            return KeptJobs(fabric, self._clamp, self._steady_paths, declared=not self._measured)
        return self._kept

    def _profile_of(
        self, view: ClusterView, job: RoutableJob, declared: Profile, waiting: Collection[str] = ()
    ) -> Profile:
        """The profile as measured; of jobs ``waiting`` to be measured nothing is known but their flows."""
        if declared.job in waiting:
            return unknown_profile(declared, job.index.sent_bytes)
        measured = view.measured.get(declared.job)
        return declared if measured is None else measured_profile(job.index.job, measured, job.index.sent_bytes)

    def _assign_levels(self, view: ClusterView, kept: KeptJobs, priorities: Mapping[str, float]) -> dict[str, int]:
        """Levels of jobs that contend; those being profiled have the highest to themselves where there are two."""
        order = kept.priorities.order()
        if self._fairness:
            order = reordered(order, priorities)
        profiling = [name for name in view.jobs if name in view.profiling] if self._profiles_first else []
        parts, in_force = kept.parts, view.decision.levels
        parts.follow(kept.used)
        first = 1 if profiling and view.level_count > 1 else HIGHEST
        if first > HIGHEST:
            in_force = {name: level - first for name, level in in_force.items() if level >= first}
        if self._compression:
            intensity = kept.priorities.intensities
            levels = parts.levels(order, intensity, view.level_count - first, view.seed, in_force, self._steady)
        else:
            levels = kept_levels(first_levels_own(parts.contending(order), view.level_count - first), in_force)
        # A job that nobody contends with any more keeps its level: to take it away would only move its packets.
        levels |= {name: level for name, level in in_force.items() if name in priorities and name not in levels}
        if not profiling:
            return levels
        return dict.fromkeys(profiling, HIGHEST) | {name: level + first for name, level in levels.items()}

    def _source_ports(self, view: ClusterView, kept: KeptJobs) -> dict[str, int]:
        """Flow -> source port that hashes to its path; a flow keeps the port in force where that still does."""
        wanted = [
            Wanted(flow, bundle.tree, taken)
            for name, job in kept.jobs.items()
            for flow, bundle, taken in zip(
                job.index.job.flows, job.index.bundles, kept.placed[name].choice.tolist(), strict=True
            )
        ]
        return source_ports(view.fabric, wanted, view.seed, view.decision.ports)

    def _notes(self, view: ClusterView, kept: KeptJobs, priorities: Mapping[str, float]) -> dict[str, object]:
        used = view.measured.keys() if self._measured else frozenset[str]()
        source = dict.fromkeys(view.jobs, "declared")
        if self._measured:
            source |= {name: "measured" for name in view.jobs if name in used}
            source |= {name: "being measured" for name in view.jobs if self._profiles_first and name in view.profiling}
        known = kept.priorities
        return {
            "profile": source,
            **({"measured_work": MEASURED_WORK} if used else {}),
            "reference": known.reference.job if known.reference else None,
            "intensity": dict(known.intensities),
            "communication_s": dict(known.communication_s),
            "k": dict(known.factors),
            "priority": dict(priorities),
        }


class CruxPa(Crux):
    """Crux-PA of section 6.3: priorities only, flows on their ECMP paths, no compression."""

    name: ClassVar[str] = "crux-pa"
    summary: ClassVar[str] = "Crux with priorities only: ECMP paths, the first K - 1 jobs a level each, no compression"
    decides: ClassVar[tuple[str, ...]] = ("levels",)

    def __init__(
        self,
        *,
        profile: str = "declared",
        arrival: str = "recompute",
        fairness: float = 0.0,
        pcie: str = "queue",
        clamp: float = CLAMP,
    ) -> None:
        super().__init__(
            paths=False,
            compression=False,
            profile=profile,
            arrival=arrival,
            fairness=fairness,
            pcie=pcie,
            clamp=clamp,
        )


class CruxPsPa(Crux):
    """Crux-PS-PA of section 6.3: paths and priorities, a level for every job, no compression.

    The paper gives it as many levels as there are jobs. On K levels the first K - 1 contending jobs have
    one each and the rest share the last: with K at least the number of contending jobs that is the same.
    """

    name: ClassVar[str] = "crux-ps-pa"
    summary: ClassVar[str] = "Crux without compression: its paths, the first K - 1 jobs a level each, the rest the last"

    def __init__(
        self,
        *,
        profile: str = "declared",
        arrival: str = "recompute",
        fairness: float = 0.0,
        enforcement: str = "rules",
        pcie: str = "queue",
        clamp: float = CLAMP,
    ) -> None:
        super().__init__(
            compression=False,
            profile=profile,
            arrival=arrival,
            fairness=fairness,
            enforcement=enforcement,
            pcie=pcie,
            clamp=clamp,
        )
