"""ECMP: every flow on the path that a seeded hash of its five-tuple gives it, or that the switches' own hash does."""

from __future__ import annotations

from typing import ClassVar

from controller.decision import ClusterView, Decision, Event, Scheduler
from controller.ecmp_hash import ecmp_paths
from controller.schedulers.common.kept_by_job import KeptByJob
from controller.schedulers.common.paths_by_job import PathsByJob
from topologies.fabric import Fabric, Path
from workloads.job import Job


class Ecmp(Scheduler):
    """The baseline: every flow on its hashed path, all at the lowest level. ``seed``: instead of the view's."""

    name: ClassVar[str] = "ecmp"
    summary: ClassVar[str] = "seeded five-tuple hash per switch, one level for all"
    decides: ClassVar[tuple[str, ...]] = ("paths",)
    source: ClassVar[str] = "RFC 2992, November 2000"

    def __init__(self, *, seed: int | None = None) -> None:
        self._seed = seed
        self._hashed = KeptByJob(_paths_of)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a path per flow and nothing else."""
        seed = view.seed if self._seed is None else self._seed
        return Decision(paths=PathsByJob(self._hashed.of(view.fabric, view.jobs, seed)))


def _paths_of(fabric: Fabric, job: Job, seed: int) -> dict[str, Path]:
    return ecmp_paths(fabric, job.flows, seed)


class EcmpSwitch(Scheduler):
    """ECMP by the select groups of the switches: their bucket choices are read back, not decided."""

    name: ClassVar[str] = "ecmp-switch"
    summary: ClassVar[str] = "the switches' own select groups choose among equal-cost next hops, one level for all"
    decides: ClassVar[tuple[str, ...]] = ("paths",)
    source: ClassVar[str] = "OpenFlow 1.3, groups of type select"
    switches_hash: ClassVar[bool] = True

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the path of flows that have only one, and name the others as hashed by the switches."""
        paths: dict[str, Path] = {}
        hashed: list[str] = []
        for flow in view.flows:
            candidates = view.fabric.candidate_paths(flow.source, flow.target)
            if len(candidates) == 1:
                paths[flow.id] = candidates[0]
            else:
                hashed.append(flow.id)
        return Decision(paths=paths, hashed=tuple(hashed))
