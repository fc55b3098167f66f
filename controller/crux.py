"""Crux (SIGCOMM'24, section 4): path selection, priority assignment and compression by GPU intensity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from controller.compression import compress, contending, contention_edges, first_levels_own
from controller.decision import ClusterView, Decision, Event
from controller.ecmp import ecmp_path
from controller.intensity import Profile, links_used, profile
from controller.path_selection import select_paths
from controller.priority import correction_factors, priority_order, reference_of
from topologies.fabric import Path


class Crux:
    """The three mechanisms of Crux, each of which can be switched off.

    ``paths`` False leaves flows on their ECMP paths; ``priorities`` False leaves all jobs at the
    default level; ``compression`` False gives the first K - 1 jobs a level each and the rest the last.
    """

    name: ClassVar[str] = "crux"
    summary: ClassVar[str] = "paths and levels by GPU intensity, priorities compressed by a maximum K-cut"

    def __init__(self, *, paths: bool = True, priorities: bool = True, compression: bool = True) -> None:
        for option, value in (("paths", paths), ("priorities", priorities), ("compression", compression)):
            if not isinstance(value, bool):
                raise ValueError(f"option '{option}' of crux must be true or false, not '{value}'")
        self._paths, self._priorities, self._compression = paths, priorities, compression

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return paths for all flows, and levels for all jobs that share a link with another."""
        paths = self._choose_paths(view)
        profiles = {job.name: profile(job, view.fabric, paths) for job in view.jobs.values()}
        senders = {name: found for name, found in profiles.items() if found.communicates}
        factors = correction_factors(tuple(senders.values()))
        priorities = {name: factors[name] * found.intensity for name, found in senders.items()}
        levels = self._assign_levels(view, paths, senders, priorities) if self._priorities else {}
        return Decision(paths=paths, levels=levels, notes=_notes(senders, factors, priorities))

    def _choose_paths(self, view: ClusterView) -> dict[str, Path]:
        if not self._paths:
            return {flow.id: ecmp_path(view.fabric, flow, view.seed) for flow in view.flows}
        before = {job.name: profile(job, view.fabric) for job in view.jobs.values()}
        order = sorted(view.jobs.values(), key=lambda job: (-before[job.name].intensity, job.name))
        return select_paths(view.fabric, order, {name: found.iteration_s for name, found in before.items()})

    def _assign_levels(
        self,
        view: ClusterView,
        paths: Mapping[str, Path],
        senders: Mapping[str, Profile],
        priorities: Mapping[str, float],
    ) -> dict[str, int]:
        order = priority_order(priorities)
        links = {name: links_used(view.jobs[name], view.fabric, paths) for name in order}
        edges = contention_edges(order, links, {name: found.intensity for name, found in senders.items()})
        jobs = contending(order, edges)
        if self._compression:
            return compress(jobs, edges, view.levels, view.seed)
        return first_levels_own(jobs, view.levels)


def _notes(
    senders: Mapping[str, Profile], factors: Mapping[str, float], priorities: Mapping[str, float]
) -> dict[str, object]:
    return {
        "profile": "declared",
        "reference": reference_of(tuple(senders.values())).job if senders else None,
        "intensity": {name: found.intensity for name, found in senders.items()},
        "communication_s": {name: found.communication_s for name, found in senders.items()},
        "k": dict(factors),
        "priority": dict(priorities),
    }
