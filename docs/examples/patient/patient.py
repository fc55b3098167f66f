"""A policy for the testbed, in a package of its own: small jobs first, until another has waited too long."""

from collections.abc import Iterator, Sequence
from math import inf

from testbed.plugins import ClusterState, ManagerEvent, PlacementRequest, Policy, QueuedJob, Waiting


class Patient(Policy):
    """The fewest GPUs first; those that have waited ``patience_s`` go before them, first come first served."""

    name = "patient"
    summary = "small jobs first, those that waited long before them"

    def __init__(self, *, patience_s: float = 600.0) -> None:
        if not isinstance(patience_s, int | float) or patience_s <= 0:
            raise ValueError(f"option 'patience_s' of patient must be a number above 0, not '{patience_s}'")
        self._patience_s = patience_s

    def decide(
        self, state: ClusterState, queued: Sequence[QueuedJob], event: ManagerEvent
    ) -> Iterator[PlacementRequest]:
        """Request GPUs in order; the placer finds them for the requests that fit."""

        def rank(job: Waiting) -> tuple[bool, int, int]:
            patient = state.time_s < self._runs_out(job)
            return patient, job.gpus if patient else 0, job.number

        for job in sorted((entry.job for entry in queued), key=rank):
            yield PlacementRequest(job, job.gpus, reason="small" if rank(job)[0] else "has waited long")

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """Decide again when the patience of a job runs out."""
        return min((self._runs_out(job) for job in waiting if self._runs_out(job) > state.time_s), default=inf)

    def _runs_out(self, job: Waiting) -> float:
        since_s = job.submit_s if job.waiting_since_s is None else job.waiting_since_s
        return since_s + self._patience_s
