"""What schedulers see of a cluster with failures: jobs that can communicate, between ports that have a cable. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from controller.decision import ClusterView
from topologies.fabric import Fabric
from topologies.reachability import Reach
from workloads.job import Flow, Job

Value = TypeVar("Value")


def cut_off_jobs(fabric: Fabric, left: Fabric, jobs: Iterable[Job]) -> frozenset[str]:
    """Names of ``jobs`` whose ports do not all reach each other where failures have left ``left`` of ``fabric``."""
    view = ClusterView(left, {job.name: job for job in jobs})
    return frozenset(view.jobs.keys() - ReachableJobs(fabric, left).seen(view).jobs.keys())


class ReachableJobs:
    """Jobs on ``fabric``, of which failures have left ``left``."""

    def __init__(self, fabric: Fabric, left: Fabric) -> None:
        self.left = left
        self._whole = left is fabric
        self._reach = Reach(fabric, left)
        self._known: dict[str, tuple[Job, Job | None]] = {}

    def seen(self, view: ClusterView) -> ClusterView:
        """``view`` without the jobs that are cut off, the others' connections between ports that have a cable."""
        if self._whole:
            return view
        jobs = {name: reached for name, job in view.jobs.items() if (reached := self.job(job)) is not None}

        def of_those(values: Mapping[str, Value]) -> dict[str, Value]:
            return {name: value for name, value in values.items() if name in jobs}

        return replace(
            view,
            jobs=jobs,
            steps=of_those(view.steps),
            measured=of_those(view.measured),
            throughput=of_those(view.throughput),
            profiling=view.profiling & jobs.keys(),
        )

    def job(self, job: Job) -> Job | None:
        """``job`` as it is seen, the same object each time; None if it is cut off."""
        known = self._known.get(job.name)
        if known is None or known[0] is not job:
            known = self._known[job.name] = job, self._reached(job)
        return known[1]

    def _reached(self, job: Job) -> Job | None:
        flows: list[Flow] = []
        for flow in job.flows:
            ends = self._reach.ends(flow.source, flow.target)
            if ends is None:
                return None
            flows.append(flow if ends == (flow.source, flow.target) else replace(flow, source=ends[0], target=ends[1]))
        return job if tuple(flows) == job.flows else replace(job, flows=tuple(flows))
