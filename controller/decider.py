"""The view of the cluster after an event, and the scheduler's answer to it.

Pure, and shared by the controller (:mod:`controller.dataplane.planner`), the flow engine and the replays: all of them
tell a scheduler the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from controller.decision import (
    ClusterView,
    Decision,
    Event,
    JobArrived,
    JobDeparted,
    JobProfiled,
    Measured,
    Scheduler,
    Step,
)
from controller.ecmp_hash import ecmp_path, with_default_paths
from topologies.fabric import Fabric
from workloads.job import Job


def wants_profiles(scheduler: Scheduler) -> bool:
    """Whether ``scheduler`` hears of measured profiles."""
    return JobProfiled in scheduler.events


def with_job(view: ClusterView, job: Job, scheduler: Scheduler) -> ClusterView:
    """Return ``view`` once ``job`` has arrived; it is to be profiled if ``scheduler`` wants that."""
    profiling = view.profiling | {job.name} if wants_profiles(scheduler) else view.profiling
    return replace(view, jobs={**view.jobs, job.name: job}, profiling=profiling)


def without_job(view: ClusterView, name: str) -> ClusterView:
    """Return ``view`` without the job ``name`` and all that was known of it."""
    return replace(
        view,
        jobs={key: job for key, job in view.jobs.items() if key != name},
        measured={key: measured for key, measured in view.measured.items() if key != name},
        profiling=view.profiling - {name},
        throughput={key: share for key, share in view.throughput.items() if key != name},
    )


def with_profile(view: ClusterView, name: str, measured: Measured) -> ClusterView:
    """Return ``view`` once the profile of the job ``name`` has come in."""
    return replace(view, measured={**view.measured, name: measured}, profiling=view.profiling - {name})


Completion = Callable[[ClusterView, Decision], Decision]
"""Adds the paths that a decision leaves open: :func:`as_decided`, ``with_default_paths`` or ``with_hashed_paths``."""


def as_decided(_view: ClusterView, decision: Decision) -> Decision:
    """Return ``decision`` as it is: who carries it out knows the ECMP paths of the jobs that it touches."""
    return decision


def with_hashed_paths(view: ClusterView, decision: Decision) -> Decision:
    """Return ``decision`` with a path for every flow, also for those that the switches are to hash.

    Where there are no switches the seeded hash stands in for theirs.
    """
    decision = with_default_paths(view, decision)
    if not decision.hashed:
        return decision
    flows = {flow.id: flow for flow in view.flows}
    paths = {flow: ecmp_path(view.fabric, flows[flow], view.seed) for flow in decision.hashed}
    return replace(decision, paths={**decision.paths, **paths}, hashed=())


def with_answer(
    view: ClusterView, scheduler: Scheduler, event: Event, complete: Completion = with_default_paths
) -> ClusterView:
    """Return ``view`` with what ``scheduler`` decides at ``event``; by default other flows take their ECMP path."""
    return replace(view, decision=complete(view, scheduler.decide(view, event)))


class Decider:
    """Holds the view of the cluster over time, and asks ``scheduler`` at every event.

    A scheduler that raises leaves the view as it was.
    """

    def __init__(
        self,
        fabric: Fabric,
        scheduler: Scheduler,
        levels: int = 8,
        seed: int = 1,
        complete: Completion = with_default_paths,
    ) -> None:
        self._scheduler = scheduler
        self._complete = complete
        self._view = ClusterView(fabric, {}, levels, seed)

    @property
    def view(self) -> ClusterView:
        """The cluster after the last event."""
        return self._view

    @property
    def decision(self) -> Decision:
        """The last answer."""
        return self._view.decision

    @property
    def wants_profiles(self) -> bool:
        """Whether the scheduler hears of measured profiles."""
        return wants_profiles(self._scheduler)

    def arrive(self, job: Job) -> Decision:
        """Add ``job``."""
        return self._decide(with_job(self._view, job, self._scheduler), JobArrived(job.name))

    def depart(self, name: str) -> Decision:
        """Remove a job."""
        return self._decide(without_job(self._view, name), JobDeparted(name))

    def profiled(self, name: str, measured: Measured) -> Decision:
        """Take in what was measured of a job."""
        return self._decide(with_profile(self._view, name, measured), JobProfiled(name))

    def links_changed(self, fabric: Fabric, event: Event) -> Decision:
        """Go on with the links that ``fabric`` has now."""
        return self._decide(replace(self._view, fabric=fabric), event)

    def jobs_changed(
        self, jobs: Mapping[str, Job], event: Event, *, steps: Mapping[str, Step], time_s: float
    ) -> Decision:
        """Go on with ``jobs`` and ``steps`` at ``time_s``: several may have changed, the scheduler hears one event."""
        return self._decide(replace(self._view, jobs=jobs, steps=steps, time_s=time_s), event)

    def take_throughput(self, shares: Mapping[str, float]) -> Mapping[str, float]:
        """Take in recent iterations per second over those alone; return what is kept: those of running jobs."""
        known = {name: share for name, share in shares.items() if name in self._view.jobs}
        self._view = replace(self._view, throughput=known)
        return known

    def go_back(self, view: ClusterView) -> None:
        """Take up an earlier ``view``: what was decided since cannot be carried out."""
        self._view = view

    def _decide(self, view: ClusterView, event: Event) -> Decision:
        self._view = with_answer(view, self._scheduler, event, self._complete)
        return self.decision
