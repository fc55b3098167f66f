"""Queues with guaranteed capacities (YARN's Capacity Scheduler): shares of the cluster in percent, level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Final

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Structure
from workloads.managers.interfaces import Queue, QueuedJob
from workloads.managers.jobs import Waiting
from workloads.managers.options import flag, naming, number
from workloads.managers.queues.queue_tree import ROOT, Order, Path, above, in_words, tree_of, used_by

DEFAULT: Final = "default"
"""The queue of jobs that name none, and the only one without the option ``queues`` (as YARN is delivered)."""
_WHOLE: Final = 100.0
_ROUNDING: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Capacities:
    """What a queue is guaranteed and what it may use ``most``, in percent of the queue that contains it."""

    capacity: float
    most: float = _WHOLE


class CapacityScheduler(Queue):
    """Serves the queue with the least use over guaranteed capacity; inside one, first come first served.

    ``queues``: name -> {capacity, most, queues}, percent of the queue that contains it; the capacities inside one add
    up to 100. What a queue does not use is lent to the others, up to their ``most`` (100). ``backfill``: whether a job
    that fits may pass one of its own queue that does not.
    """

    name: ClassVar[str] = "capacity-scheduler"
    summary: ClassVar[str] = "queues with guaranteed capacities, the one with the least use over its capacity first"
    uses: Mapping[str, str] = {"virtual_cluster": "dividing the cluster between queues"}

    def __init__(self, *, queues: Mapping[str, Mapping[str, object]] | None = None, backfill: bool = False) -> None:
        self._only_default = queues is None or queues == {}
        self._backfill = flag(self.name, "backfill", backfill)
        with naming(self.name, "queues"):
            given = {DEFAULT: {"capacity": _WHOLE}} if self._only_default else queues
            self._tree = tree_of(given, _capacities_of)
            self._require_whole()

    def _require_whole(self) -> None:
        """The capacities of queues beside each other add up to 100 percent."""
        for parent, inside in self._tree.children.items():
            total = sum(self._tree.shares[path].capacity for path in inside)
            if abs(total - _WHOLE) > _ROUNDING:
                where = f"inside '{in_words(parent)}'" if parent else "at the top"
                raise ValueError(f"the capacities of the queues {where} add up to {total:g}, expected 100 (percent)")

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """Why ``job`` can never start: there is no such queue, or it asks for more than the queue may use at most."""
        leaf = self._leaf(job.virtual_cluster)
        if leaf is None:
            known = ", ".join(sorted({in_words(path) for path in self._tree.leaves.values()}))
            return f"job '{job.name}': there is no queue '{job.virtual_cluster or DEFAULT}', expected one of: {known}"
        for path in above(leaf):
            most = int(self._most(path, len(structure.gpus)))
            if job.gpus > most:
                return f"job '{job.name}' asks for {job.gpus} GPUs, queue '{in_words(path)}' may use {most} at most"
        return None

    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> Sequence[QueuedJob]:
        """The waiting jobs of queues that may use more, ordered by their use over capacity; a line for each queue."""
        queues: dict[Path, list[Waiting]] = {}
        for job in waiting:
            leaf = self._leaf(job.virtual_cluster)
            if leaf is not None:
                queues.setdefault(leaf, []).append(job)
        gpus = state.present_gpus

        def rank(path: Path, used: Mapping[Path, int]) -> tuple[float, ...]:
            guaranteed = self._guaranteed(path, gpus)
            return (used.get(path, 0) / guaranteed if guaranteed > 0 else inf,)

        order = Order(self._tree.children, rank, lambda path: self._most(path, gpus), self._backfill)
        used = used_by(state, lambda virtual_cluster: self._leaf(virtual_cluster) or ROOT)
        served = order.serve(queues, used)
        return [QueuedJob(job, None if self._backfill else in_words(leaf)) for leaf, job in served]

    def limits(self, state: ClusterState, job: Waiting) -> Mapping[str, float]:
        """What the queues that contain ``job`` may use, of those that may not use all."""
        paths = above(self._leaf(job.virtual_cluster) or ROOT)
        bounded = [path for path in paths if any(self._tree.shares[each].most < _WHOLE for each in above(path))]
        return {in_words(path): int(self._most(path, state.present_gpus)) for path in bounded}

    def _leaf(self, virtual_cluster: str) -> Path | None:
        return (DEFAULT,) if self._only_default else self._tree.leaves.get(virtual_cluster or DEFAULT)

    def _guaranteed(self, path: Path, gpus: int) -> float:
        """GPUs that a queue is guaranteed, of all ``gpus``."""
        share = float(gpus)
        for each in above(path):
            share *= self._tree.shares[each].capacity / _WHOLE
        return share

    def _most(self, path: Path, gpus: int) -> float:
        """GPUs that a queue may use, of all ``gpus``."""
        share = float(gpus)
        for each in above(path):
            share *= self._tree.shares[each].most / _WHOLE
        return share + _ROUNDING


def _capacities_of(name: str, given: Mapping[str, object]) -> Capacities:
    unknown = sorted(map(str, given.keys() - {"capacity", "most"}))
    if unknown:
        raise ValueError(f"queue '{name}' has an unknown key '{unknown[0]}', expected capacity, most or queues")
    if "capacity" not in given:
        raise ValueError(f"queue '{name}' has no capacity, expected percent such as 'capacity: 40'")
    found = Capacities(**{key: number(f"queue '{name}'", key, value, least=0) for key, value in given.items()})
    if not found.capacity <= found.most <= _WHOLE:
        raise ValueError(f"queue '{name}' must have capacity <= most <= 100 (percent)")
    return found
