"""First come, first served, with and without backfilling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Queue, QueuedJob
from workloads.managers.jobs import Waiting


class Fifo(Queue):
    """First come, first served: no job overtakes one that cannot start."""

    name: ClassVar[str] = "fifo"
    summary: ClassVar[str] = "in order of submission; a job that cannot start holds up all behind it"

    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> Sequence[QueuedJob]:
        """All waiting jobs, in one line."""
        return tuple(QueuedJob(job, "") for job in waiting)


class FifoBackfill(Queue):
    """First come, first served, but a job that fits may pass one that does not.

    No time is reserved for the job that is passed: a large job may wait long while small ones start.
    """

    name: ClassVar[str] = "fifo-backfill"
    summary: ClassVar[str] = "in order of submission; a job that fits may pass one that does not"

    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> Sequence[QueuedJob]:
        """All waiting jobs, none of which blocks another."""
        return tuple(QueuedJob(job) for job in waiting)
