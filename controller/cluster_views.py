"""The view of the cluster after an event, and the scheduler's answer to it.

Pure, and shared by the controller (:mod:`controller.state`) and the flow engine (:mod:`testbed.flow.deciding`): whoever
asks a scheduler tells it the same. A scheduler that raises changes nothing, since views are immutable.
"""

from __future__ import annotations

from dataclasses import replace

from controller.decision import ClusterView, Event, JobProfiled, Measured, Scheduler
from controller.ecmp import with_default_paths
from workloads.job import Job


def wants_profiles(scheduler: Scheduler) -> bool:
    """Whether ``scheduler`` hears of measured profiles."""
    return JobProfiled in getattr(scheduler, "events", ())


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
