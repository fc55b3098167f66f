"""The view of the cluster after an event, and the scheduler's answer to it.

Pure, and shared by the controller (:mod:`controller.dataplane.planner`), the flow engine and the replays: whoever asks
a scheduler tells it the same. A scheduler that raises changes nothing, since views are immutable.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def with_answer(view: ClusterView, scheduler: Scheduler, event: Event) -> ClusterView:
    """Return ``view`` with what ``scheduler`` decides at ``event``; a flow that it leaves out takes its ECMP path."""
    return replace(view, decision=with_default_paths(view, scheduler.decide(view, event)))


class Decider:
    """Asks ``scheduler`` at every arrival, departure and profile."""

    def __init__(self, fabric: Fabric, scheduler: Scheduler, levels: int, seed: int) -> None:
        self._scheduler = scheduler
        self._view = ClusterView(fabric, {}, levels, seed)

    @property
    def decision(self) -> Decision:
        """The last answer."""
        return self._view.decision

    @property
    def wants_profiles(self) -> bool:
        """Whether the scheduler hears of measured profiles."""
        return wants_profiles(self._scheduler)

    def arrive(self, job: Job, throughput: Mapping[str, float]) -> Decision:
        """Add ``job``; ``throughput``: job -> recent iterations per second over those alone."""
        return self._decide(
            with_job(replace(self._view, throughput=throughput), job, self._scheduler), JobArrived(job.name)
        )

    def depart(self, name: str) -> Decision:
        """Remove a job."""
        return self._decide(without_job(self._view, name), JobDeparted(name))

    def profiled(self, name: str, measured: Measured) -> Decision:
        """Take in what was measured of a job."""
        return self._decide(with_profile(self._view, name, measured), JobProfiled(name))

    def links_changed(self, fabric: Fabric, event: Event) -> Decision:
        """Go on with the links that ``fabric`` has now."""
        return self._decide(replace(self._view, fabric=fabric), event)

    def _decide(self, view: ClusterView, event: Event) -> Decision:
        self._view = _with_hashed_paths(with_answer(view, self._scheduler, event))
        return self.decision


def _with_hashed_paths(view: ClusterView) -> ClusterView:
    """What the switches' own hash would choose is unknown here: the seeded hash stands in for it."""
    decision = view.decision
    if not decision.hashed:
        return view
    flows = {flow.id: flow for flow in view.flows}
    paths = {flow: ecmp_path(view.fabric, flows[flow], view.seed) for flow in decision.hashed}
    return replace(view, decision=replace(decision, paths={**decision.paths, **paths}, hashed=()))
