"""The controller's part of a flow-level run: which jobs run, what is known of them, what the scheduler says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from controller.cluster_views import wants_profiles, with_answer, with_job, with_profile, without_job
from controller.decision import ClusterView, Decision, Event, JobArrived, JobDeparted, JobProfiled, Measured, Scheduler
from controller.ecmp import ecmp_path
from topologies.fabric import Fabric
from workloads.job import Job


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
