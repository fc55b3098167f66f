"""ECMP paths of the running jobs, hashed once: an event that changes one job does not hash the flows of all again."""

from __future__ import annotations

from collections.abc import Mapping

from controller.decision import ClusterView
from controller.ecmp_hash import ecmp_path
from controller.schedulers.common.paths_by_job import PathsByJob
from topologies.fabric import Fabric, Path
from workloads.job import Job


class HashedPaths:
    """Paths by job, kept as long as the job, the fabric and the seed stay the same objects and number."""

    def __init__(self) -> None:
        self._fabric: Fabric | None = None
        self._seed = 0
        self._known: dict[str, tuple[Job, Mapping[str, Path]]] = {}

    def of(self, view: ClusterView, seed: int) -> PathsByJob:
        """Return the path that ``seed`` gives each flow of the jobs in ``view``."""
        if self._fabric is not view.fabric or self._seed != seed:
            self._fabric, self._seed, self._known = view.fabric, seed, {}
        known = self._known
        self._known = {
            name: known[name] if name in known and known[name][0] is job else (job, _hashed(view.fabric, job, seed))
            for name, job in view.jobs.items()
        }
        return PathsByJob({name: paths for name, (_, paths) in self._known.items()})


def _hashed(fabric: Fabric, job: Job, seed: int) -> Mapping[str, Path]:
    return {flow.id: ecmp_path(fabric, flow, seed) for flow in job.flows}
