"""The view of the cluster after an event, and the scheduler's decision on it.

Pure, and shared by the controller (:mod:`controller.dataplane.planner`), the flow engine and the replays: all of them
give a scheduler the same view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

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
    StepEnded,
    StepStarted,
    ThroughputMeasured,
)
from controller.ecmp_hash import ecmp_path, with_default_paths
from controller.reachable_jobs import ReachableJobs
from topologies.fabric import Fabric
from workloads.job import Job


def wants_profiles(scheduler: Scheduler) -> bool:
    """Whether ``scheduler`` is called when a profile has been measured."""
    return JobProfiled in scheduler.events


def period_of(scheduler: Scheduler) -> float:
    """Seconds after which ``scheduler`` is called again with recent throughput; 0 if it does not ask for that."""
    return scheduler.every_s if ThroughputMeasured in scheduler.events else 0.0


def with_job(view: ClusterView, job: Job, scheduler: Scheduler) -> ClusterView:
    """Return ``view`` after ``job`` has arrived; the job is marked for profiling if ``scheduler`` uses profiles."""
    profiling = view.profiling | {job.name} if wants_profiles(scheduler) else view.profiling
    return replace(view, jobs={**view.jobs, job.name: job}, profiling=profiling)


def without_job(view: ClusterView, name: str) -> ClusterView:
    """Return ``view`` without the job ``name`` and its measurements."""
    return replace(
        view,
        jobs={key: job for key, job in view.jobs.items() if key != name},
        measured={key: measured for key, measured in view.measured.items() if key != name},
        profiling=view.profiling - {name},
        throughput={key: share for key, share in view.throughput.items() if key != name},
    )


def with_profile(view: ClusterView, name: str, measured: Measured) -> ClusterView:
    """Return ``view`` after the profile of the job ``name`` has been measured."""
    return replace(view, measured={**view.measured, name: measured}, profiling=view.profiling - {name})


Completion = Callable[[ClusterView, Decision], Decision]
"""Adds the paths that a decision leaves open: :func:`as_decided`, ``with_default_paths`` or ``with_hashed_paths``."""


def as_decided(_view: ClusterView, decision: Decision) -> Decision:
    """Return ``decision`` unchanged: the code that carries it out knows the ECMP paths of the jobs concerned."""
    return decision


def with_hashed_paths(view: ClusterView, decision: Decision) -> Decision:
    """Return ``decision`` with a path for every flow, including flows left to the switches' hash.

    Where there are no switches, the seeded hash replaces theirs.
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
    """Return ``view`` with the decision of ``scheduler`` at ``event``; by default other flows take their ECMP path."""
    return replace(view, decision=_with_own_ports(view, complete(view, scheduler.decide(view, event))))


def _with_own_ports(view: ClusterView, decision: Decision) -> Decision:
    """Return ``decision`` without source ports for connections that real programs have opened from theirs."""
    if not decision.ports:
        return decision
    fixed = {flow.id for flow in view.flows if flow.two_way}
    ports = {flow: port for flow, port in decision.ports.items() if flow not in fixed}
    return decision if len(ports) == len(decision.ports) else replace(decision, ports=ports)


def _with_cut_off(decision: Decision, jobs: tuple[str, ...]) -> Decision:
    return decision if decision.cut_off == jobs else replace(decision, cut_off=jobs)


ABOUT_A_JOB: Final = (JobArrived, JobProfiled, StepStarted, StepEnded)
"""Events about a job that runs."""


class Decider:
    """Keeps the view of the cluster up to date, and calls ``scheduler`` at every event.

    If the scheduler raises, the view stays unchanged.
    """

    def __init__(
        self,
        fabric: Fabric,
        scheduler: Scheduler,
        levels: int = 8,
        seed: int = 1,
        complete: Completion = with_default_paths,
        *,
        keeps_notes: bool = True,
    ) -> None:
        """``keeps_notes`` False tells the scheduler that nobody reads its notes."""
        self._scheduler = scheduler
        self._complete = complete
        self._fabric = fabric
        self._reachable = ReachableJobs(fabric, fabric)
        self._view = ClusterView(fabric, {}, levels, seed, keeps_notes=keeps_notes)

    @property
    def view(self) -> ClusterView:
        """The cluster after the last event, with all jobs as they are; schedulers see :attr:`seen`."""
        return self._view

    @property
    def seen(self) -> ClusterView:
        """The view of schedulers: jobs that are cut off are left out, connections are between ports with a cable."""
        if self._reachable.left is not self._view.fabric:
            self._reachable = ReachableJobs(self._fabric, self._view.fabric)
        return self._reachable.seen(self._view)

    @property
    def cut_off(self) -> frozenset[str]:
        """Names of running jobs that cannot communicate, because failures have left no way between their ports."""
        return frozenset(self._view.jobs.keys() - self.seen.jobs.keys())

    @property
    def decision(self) -> Decision:
        """The last decision."""
        return self._view.decision

    @property
    def period_s(self) -> float:
        """See :func:`period_of`."""
        return period_of(self._scheduler)

    @property
    def wants_profiles(self) -> bool:
        """Whether the scheduler is called when a profile has been measured."""
        return wants_profiles(self._scheduler)

    def arrive(self, job: Job) -> Decision:
        """Add ``job``."""
        return self._decide(with_job(self._view, job, self._scheduler), JobArrived(job.name))

    def reconnected(self, job: Job) -> Decision:
        """Put ``job`` in the place of the running one of its name: its connections have changed."""
        return self._decide(replace(self._view, jobs={**self._view.jobs, job.name: job}), JobArrived(job.name))

    def depart(self, name: str) -> Decision:
        """Remove a job."""
        return self._decide(without_job(self._view, name), JobDeparted(name))

    def profiled(self, name: str, measured: Measured) -> Decision:
        """Add the measured profile of a job."""
        return self._decide(with_profile(self._view, name, measured), JobProfiled(name))

    def links_changed(self, fabric: Fabric, event: Event) -> Decision:
        """Replace the fabric by ``fabric``, which has the links that work now."""
        return self._decide(replace(self._view, fabric=fabric), event)

    def jobs_changed(
        self, jobs: Mapping[str, Job], event: Event, *, steps: Mapping[str, Step], time_s: float
    ) -> Decision:
        """Set ``jobs`` and ``steps`` at ``time_s``: several may have changed, but the scheduler gets one event."""
        return self._decide(replace(self._view, jobs=jobs, steps=steps, time_s=time_s), event)

    def take_throughput(self, shares: Mapping[str, float]) -> Mapping[str, float]:
        """Store recent iterations per second over those alone; return the stored ones: those of running jobs."""
        known = {name: share for name, share in shares.items() if name in self._view.jobs}
        self._view = replace(self._view, throughput=known)
        return known

    def throughput_measured(self, shares: Mapping[str, float]) -> Decision:
        """Store ``shares`` as :meth:`take_throughput` does, and decide again."""
        known = {name: share for name, share in shares.items() if name in self._view.jobs}
        return self._decide(replace(self._view, throughput=known), ThroughputMeasured())

    def go_back(self, view: ClusterView) -> None:
        """Restore an earlier ``view``, because the decisions since then cannot be carried out."""
        self._view = view

    def _decide(self, view: ClusterView, event: Event) -> Decision:
        """Let the scheduler decide, unless all it would hear of is a job that is cut off."""
        before, self._view = self._view, view
        try:
            cut_off = self.cut_off
            asked = not isinstance(event, ABOUT_A_JOB) or event.job not in cut_off
            seen = with_answer(self.seen, self._scheduler, event, self._complete) if asked else view
            self._view = replace(view, decision=_with_cut_off(seen.decision, tuple(sorted(cut_off))))
        except BaseException:
            self._view = before
            raise
        return self.decision
