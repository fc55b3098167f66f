"""Kubernetes' default scheduler: pod by pod, no gangs. A job holds its GPUs while it waits for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import ClassVar

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.policies.preemption import asked_by


class Kubernetes(Policy):
    """A pod per GPU. Pods that do not fit back off while others pass: jobs get their pods in turns.

    Two jobs that each hold a part of what both need deadlock, which gang scheduling prevents.
    """

    name: ClassVar[str] = "kubernetes"
    summary: ClassVar[str] = "pod by pod, a GPU each, no gangs: jobs hold GPUs while they wait for the rest"
    changes_running: ClassVar[bool] = True
    needs_remaining: ClassVar[bool] = False

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PlacementRequest]:
        """Give free GPUs to jobs that lack some, one at a time in turn."""
        holding = [each for each in state.running.values() if len(each.gpus) < each.job.gpus]
        asking = [each.job for each in holding] + [entry.job for entry in queued]
        lacks = {each.name: each.job.gpus - len(each.gpus) for each in holding}
        lacks |= {entry.job.name: entry.job.gpus for entry in queued}
        granted = dict(_in_turns(sorted(asking, key=lambda job: job.number), lacks, state.free_gpus))
        for each in holding:
            if granted.get(each.name):
                yield self._request(each, len(each.gpus) + granted[each.name])
        for entry in queued:
            if granted.get(entry.job.name):
                yield self._request(entry.job, granted[entry.job.name])

    @staticmethod
    def _request(each: Running | Waiting, gpus: int) -> PlacementRequest:
        job = asked_by(each)
        pause_s = 0.0 if gpus == job.gpus else inf
        kind = "resize" if isinstance(each, Running) else "start"
        return PlacementRequest(job, gpus, kind, reason="a pod found a GPU", pause_s=pause_s)  # type: ignore[arg-type]


def _in_turns(asking: Sequence[Waiting], lacks: dict[str, int], free: int) -> Iterable[tuple[str, int]]:
    """Job -> GPUs it gets now."""
    granted = dict.fromkeys((job.name for job in asking), 0)
    while free and any(granted[name] < lacks[name] for name in granted):
        for name in granted:
            if free and granted[name] < lacks[name]:
                granted[name] += 1
                free -= 1
    return granted.items()
