"""Lina (ATC 2023): the all-to-alls of a job before its own gradient exchange.

Lina cuts an allreduce into micro-ops and starts one only when no all-to-all waits, so that an all-to-all waits for
one micro-op at most. On strict priority queues it waits for one packet. Jobs among each other share evenly.
"""

from __future__ import annotations

from typing import ClassVar

from controller.decision import ClusterView, Decision, Event, Scheduler
from workloads.job import Job


def all_to_all_flows(job: Job) -> frozenset[str]:
    """Return the ids of the flows of ``job`` that carry all-to-alls."""
    return frozenset(
        transfer.flow for phase in job.phases if phase.collective == "alltoall" for transfer in phase.transfers
    )


class Lina(Scheduler):
    """All-to-alls at the highest level, everything else at the lowest; paths are those of ECMP."""

    name: ClassVar[str] = "lina"
    summary: ClassVar[str] = "the all-to-alls of a job before its own gradient exchange"
    decides: ClassVar[tuple[str, ...]] = ("levels",)
    source: ClassVar[str] = "Li et al., ATC 2023, section 4"

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a level per flow."""
        first = frozenset[str]().union(*(all_to_all_flows(job) for job in view.jobs.values()))
        return Decision(levels={flow.id: 0 if flow.id in first else view.level_count - 1 for flow in view.flows})
