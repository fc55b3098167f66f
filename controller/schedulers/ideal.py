"""Each job alone on the cluster: the reference that no shared schedule can beat."""

from __future__ import annotations

from typing import ClassVar

from controller.decision import ClusterView, Decision, Event, Scheduler
from controller.ecmp_hash import ecmp_paths
from controller.schedulers.crux.path_selection import select_paths
from workloads.analysis import isolated


class Ideal(Scheduler):
    """Each job runs alone (``alone``), its flows spread over the least loaded paths as Crux does it (section 4.1).

    Should there be several jobs in the view, they choose in order of arrival. ``paths: ecmp`` leaves every flow on its
    hashed path: a job alone, but for its own collisions.
    """

    name: ClassVar[str] = "ideal"
    summary: ClassVar[str] = "each job by itself, its flows on the least loaded paths"
    decides: ClassVar[tuple[str, ...]] = ("paths",)
    source: ClassVar[str] = "Cao et al., SIGCOMM 2024, section 6.2 (Ideal)"
    alone: ClassVar[bool] = True

    def __init__(self, *, paths: str = "least-loaded") -> None:
        if paths not in ("least-loaded", "ecmp"):
            raise ValueError(f"option 'paths' of ideal must be least-loaded or ecmp, not '{paths}'")
        self._hashed = paths == "ecmp"

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a path per flow and nothing else."""
        if self._hashed:
            return Decision(paths=ecmp_paths(view.fabric, view.flows, view.seed))
        jobs = tuple(view.jobs.values())
        iteration_s = {job.name: isolated(job, view.fabric).iteration_s for job in jobs}
        return Decision(paths=select_paths(view.fabric, jobs, iteration_s))
