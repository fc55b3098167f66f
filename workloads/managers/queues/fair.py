"""Fair queues of virtual clusters (YARN's Fair Scheduler, as Philly uses it): weights, bounds, idle quota lent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Queue, QueuedJob
from workloads.managers.jobs import Waiting
from workloads.managers.queues.fair_share import Share, fair_shares


class Fair(Queue):
    """Serves the virtual cluster furthest below its fair share; inside one, first come first served.

    ``shares``: virtual cluster -> {weight, least, most}; others have weight 1. What a virtual cluster does not
    ask for is lent to the others. Options ``backfill``: whether a job that fits may pass one of its own cluster that
    does not.
    """

    name: ClassVar[str] = "fair"
    summary: ClassVar[str] = "virtual clusters by weight, the one furthest below its fair share first"

    def __init__(self, *, shares: Mapping[str, Mapping[str, float]] | None = None, backfill: bool = False) -> None:
        self._shares = {name: _share_of(name, given) for name, given in (shares or {}).items()}
        self._backfill = backfill

    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> Sequence[QueuedJob]:
        """The waiting jobs of clusters that may have more, ordered by their shares; a line for each cluster."""
        used = _used(state)
        queues: dict[str, list[Waiting]] = {}
        for job in waiting:
            queues.setdefault(job.virtual_cluster, []).append(job)
        active = {name: self._share(name) for name in dict.fromkeys((*used, *queues))}
        fair = fair_shares(state.present_gpus, active)
        queued: list[QueuedJob] = []
        while queues:
            name = min(queues, key=lambda each: self._hunger(each, used, fair))
            job = queues[name].pop(0)
            if not queues[name]:
                del queues[name]
            if used.get(name, 0) + job.gpus > active[name].most:
                queues.pop(name, None)
                continue
            used[name] = used.get(name, 0) + job.gpus
            queued.append(QueuedJob(job, None if self._backfill else name))
        return queued

    def _hunger(self, name: str, used: Mapping[str, int], fair: Mapping[str, int]) -> tuple[int, float, str]:
        """Those below their least share first, by how much of it they have; then by use over fair share."""
        have, least = used.get(name, 0), self._share(name).least
        if have < least:
            return (0, have / least, name)
        return (1, have / max(fair.get(name, 0), 1), name)

    def _share(self, name: str) -> Share:
        return self._shares.get(name, Share())


def _used(state: ClusterState) -> dict[str, int]:
    used: dict[str, int] = {}
    for running in state.running.values():
        name = running.job.virtual_cluster
        used[name] = used.get(name, 0) + len(running.gpus)
    return used


def _share_of(name: str, given: Mapping[str, float]) -> Share:
    unknown = sorted(given.keys() - {"weight", "least", "most"})
    if unknown:
        raise ValueError(
            f"share of virtual cluster '{name}' has an unknown key '{unknown[0]}', expected weight, least or most"
        )
    share = Share(**given)
    if share.weight <= 0 or not 0 <= share.least <= share.most:
        raise ValueError(f"share of virtual cluster '{name}' must have weight > 0 and 0 <= least <= most")
    return share
