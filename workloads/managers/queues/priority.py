"""Priorities inside virtual clusters (HiveD, Zhao et al., OSDI 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Queue, QueuedJob
from workloads.managers.jobs import Running, Waiting


class Priority(Queue):
    """The highest priority first, then first come first served; a job that fits may pass one that does not.

    A job that finds no place preempts jobs of its own virtual cluster that have a lower priority, the lowest first, of
    equal ones the last to start. Jobs of other virtual clusters never make way; opportunistic jobs have no priority.
    """

    name: ClassVar[str] = "priority"
    summary: ClassVar[str] = (
        "by priority; a job preempts those of lower priority in its virtual cluster before it waits"
    )
    uses: Mapping[str, str] = {"priority": "preemption inside virtual clusters", "opportunistic": ""}

    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> Sequence[QueuedJob]:
        """All waiting jobs, each with the running ones that make way for it."""
        ordered = sorted(waiting, key=lambda job: (job.opportunistic, -job.priority))
        running: dict[str, list[Running]] = {}
        for each in state.running.values():
            if each.job.preemptible and not each.job.opportunistic:
                running.setdefault(each.job.virtual_cluster, []).append(each)
        return tuple(QueuedJob(job, evicts=_lower(running.get(job.virtual_cluster, ()), job)) for job in ordered)


def _lower(running: Sequence[Running], job: Waiting) -> tuple[str, ...]:
    """Names of the jobs of lower priority, in the order in which they make way for ``job``."""
    if job.opportunistic:
        return ()
    lower = [each for each in reversed(running) if each.job.priority < job.priority]
    return tuple(each.name for each in sorted(lower, key=lambda each: each.job.priority))
