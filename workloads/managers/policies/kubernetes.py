"""Kubernetes' default scheduler: pod by pod, no gangs. A job holds its GPUs while it waits for the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice
from math import inf
from typing import ClassVar, Final

from workloads.managers.actions import Ask, Requeue
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import number

CREATE_S: Final = 0.05
"""Between two pods of a job: a controller manager makes 20 requests per second (``--kube-api-qps``)."""
BACK_OFF_S: Final = 10.0
"""The longest back-off of a pod (``podMaxBackoffSeconds``)."""


class Kubernetes(Policy):
    """A pod per GPU; free GPUs go to the pods that were created first, whatever job they are of.

    A job's pods are created ``create_s`` apart, so the pods of jobs that are submitted together take turns. If each of
    two jobs then holds a part of what both need, both wait forever, which gang scheduling prevents. With ``release_s``
    a job that has held a part for so long gives it back and asks again after ``back_off_s``, as with the plug-in
    Coscheduling; the job whose first pod is the oldest keeps its part, so that one gets on.
    """

    name: ClassVar[str] = "kubernetes"
    summary: ClassVar[str] = "pod by pod, a GPU each, no gangs: jobs hold GPUs while they wait for the rest"
    changes_running: ClassVar[bool] = True
    heeds_evicts: ClassVar[bool] = False
    needs_remaining: ClassVar[bool] = False

    def __init__(
        self, *, create_s: float = CREATE_S, release_s: float | None = None, back_off_s: float = BACK_OFF_S
    ) -> None:
        self._create_s = number(self.name, "create_s", create_s, least=0)
        self._release_s = inf if release_s is None else number(self.name, "release_s", release_s, above=0)
        self._back_off_s = number(self.name, "back_off_s", back_off_s, least=0)

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Release the jobs whose time is over, and give free GPUs to pods by their age."""
        holding, late = _holding(state), self._late(state)
        for held in late:
            reason = f"held {len(held.gpus)} of {held.job.gpus} GPUs for {self._release_s:g} s"
            yield Requeue(held.name, state.time_s + self._back_off_s, state.time_s, reason)
        free = state.free_gpus + sum(len(each.gpus) for each in late)
        for entry in queued:
            if _begins_again(entry.job):
                yield Ask(entry.job.name, state.time_s, "its pods were created again")
        asking: list[Running | Waiting] = [each for each in holding if each not in late]
        asking += [_with_age(entry.job, state.time_s) for entry in queued]
        granted = self._granted(asking, free)
        for asked in asking:
            if asked.name in granted:
                yield _request(asked, granted[asked.name])

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """Return when the next job has held a part for long enough."""
        if self._release_s == inf:
            return inf
        return min((each.since_s + self._release_s for each in _holding(state)[1:]), default=inf)

    def _late(self, state: ClusterState) -> list[Running]:
        """Those that give back what they hold: not the one with the oldest pod."""
        if self._release_s == inf:
            return []
        return [each for each in _holding(state)[1:] if state.time_s >= each.since_s + self._release_s]

    def _granted(self, asking: Sequence[Running | Waiting], free: int) -> Mapping[str, int]:
        """Job -> GPUs it gets now: the oldest pods get the ``free`` ones."""
        if not free:
            return {}
        granted: dict[str, int] = {}
        for _, _, name in islice(merge(*(self._pods(each) for each in asking)), free):
            granted[name] = granted.get(name, 0) + 1
        return granted

    def _pods(self, each: Running | Waiting) -> Iterator[tuple[float, int, str]]:
        """The pods of a job that lack a GPU: creation time, number and name of the job; the oldest got theirs first."""
        job = each.job if isinstance(each, Running) else each
        for pod in range(len(each.gpus) if isinstance(each, Running) else 0, job.gpus):
            yield _age_s(job) + pod * self._create_s, job.number, job.name


def _holding(state: ClusterState) -> list[Running]:
    """The jobs that hold some of their GPUs, the one with the oldest pod first."""
    holding = [each for each in state.running.values() if each.holding]
    return sorted(holding, key=lambda each: (_age_s(each.job), each.job.number))


def _age_s(job: Waiting) -> float:
    """When its first pod was created."""
    return job.submit_s if job.asking_since_s is None else job.asking_since_s


def _begins_again(job: Waiting) -> bool:
    """Whether its pods are new ones: it gave back what it held, or its last attempt failed."""
    return job.tries + job.attempts > 0 and job.asking_since_s is None


def _with_age(job: Waiting, now_s: float) -> Waiting:
    return replace(job, asking_since_s=now_s) if _begins_again(job) else job


def _request(each: Running | Waiting, more: int) -> PlacementRequest:
    reason = "a pod found a GPU"
    if isinstance(each, Waiting):
        return PlacementRequest(each, more, reason=reason, pause_s=0.0 if more == each.gpus else inf)
    gpus = len(each.gpus) + more
    return PlacementRequest(each.job, gpus, "resize", reason=reason, pause_s=0.0 if gpus == each.job.gpus else inf)
