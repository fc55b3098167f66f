"""What each job would do with the cluster to itself: the yardstick that no sharing can beat."""

from __future__ import annotations

from typing import ClassVar

from controller.decision import JOB_EVENTS, ClusterView, Decision, Event
from controller.path_selection import select_paths
from workloads.analysis import isolated


class Ideal:
    """Each job runs alone (``alone``), its flows spread over the least loaded paths as Crux does it (section 4.1).

    Should there be several jobs in the view, they choose in order of arrival.
    """

    name: ClassVar[str] = "ideal"
    summary: ClassVar[str] = "each job by itself, its flows on the least loaded paths"
    events: ClassVar[frozenset[type]] = JOB_EVENTS
    decides: ClassVar[tuple[str, ...]] = ("paths",)
    source: ClassVar[str] = "Cao et al., SIGCOMM 2024, section 6.2 (Ideal)"
    alone: ClassVar[bool] = True

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a path per flow and nothing else."""
        jobs = tuple(view.jobs.values())
        iteration_s = {job.name: isolated(job, view.fabric).iteration_s for job in jobs}
        return Decision(paths=select_paths(view.fabric, jobs, iteration_s))
