"""The controller's part of a flow-level run: which jobs run, what is known of them, what the scheduler says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from controller.decision import ClusterView, Decision, Event, JobArrived, JobDeparted, JobProfiled, Measured, Scheduler
from controller.ecmp import ecmp_path, with_default_paths
from topologies.fabric import Fabric
from workloads.job import Job


class Decider:
    """Asks ``scheduler`` at every arrival, departure and profile; ``decision`` is the last answer."""

    def __init__(self, fabric: Fabric, scheduler: Scheduler, levels: int, seed: int) -> None:
        self._fabric = fabric
        self._scheduler = scheduler
        self._levels = levels
        self._seed = seed
        self.jobs: dict[str, Job] = {}
        self.decision = Decision()
        self._measured: dict[str, Measured] = {}
        self._profiling: frozenset[str] = frozenset()

    @property
    def wants_profiles(self) -> bool:
        """Whether the scheduler hears of measured profiles."""
        return JobProfiled in getattr(self._scheduler, "events", ())

    def arrive(self, job: Job, throughput: Mapping[str, float]) -> Decision:
        """Add ``job``; ``throughput``: job -> iterations per second over those alone."""
        self.jobs[job.name] = job
        if self.wants_profiles:
            self._profiling |= {job.name}
        return self._decide(JobArrived(job.name), throughput)

    def depart(self, name: str) -> Decision:
        """Remove a job."""
        del self.jobs[name]
        self._profiling -= {name}
        self._measured.pop(name, None)
        return self._decide(JobDeparted(name), {})

    def profiled(self, name: str, measured: Measured) -> Decision:
        """Take in what was measured of a job."""
        self._measured[name] = measured
        self._profiling -= {name}
        return self._decide(JobProfiled(name), {})

    def links_changed(self, fabric: Fabric, event: Event) -> Decision:
        """Go on with the links that ``fabric`` has now."""
        self._fabric = fabric
        return self._decide(event, {})

    def _decide(self, event: Event, throughput: Mapping[str, float]) -> Decision:
        view = ClusterView(
            self._fabric, dict(self.jobs), self._levels, self._seed, self.decision, measured=self._measured,
            profiling=self._profiling, throughput=throughput,
        )  # fmt: skip
        self.decision = self._with_hashed_paths(with_default_paths(view, self._scheduler.decide(view, event)))
        return self.decision

    def _with_hashed_paths(self, decision: Decision) -> Decision:
        """What the switches' own hash would choose is unknown here: the seeded hash stands in for it."""
        if not decision.hashed:
            return decision
        flows = {flow.id: flow for job in self.jobs.values() for flow in job.flows}
        paths = {flow: ecmp_path(self._fabric, flows[flow], self._seed) for flow in decision.hashed}
        return replace(decision, paths={**decision.paths, **paths}, hashed=())
