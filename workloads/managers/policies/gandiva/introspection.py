"""Gandiva's introspective migration (Xiao et al., OSDI 2018): a move is kept if measured progress improves.

A job is moved to fewer hosts, or away from interference: to other hosts when it is slower than alone. After a trial it
goes back if it was faster where it came from. One job moves per decision, and none twice in ten trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from workloads.managers.actions import Migrate
from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Ints
from workloads.managers.jobs import Running
from workloads.managers.placers.consolidated import Share, consolidate, placement_of

TOLERANCE: Final = 0.05
"""Speeds that differ by less, as shares of the speed alone, count as equal."""
TRIALS_OF_REST: Final = 10


@dataclass(frozen=True, slots=True)
class Introspection:
    """``trial_s``: for how long a job is measured before and after a move, which costs ``migrate_s``."""

    trial_s: float
    migrate_s: float

    def undone(self, state: ClusterState) -> Iterator[Migrate]:
        """Jobs that were faster where they were before go back, if they still can."""
        taken: set[str] = set()
        for each in state.running.values():
            if self._moved(each) and state.time_s >= self._tried_s(each) - 1e-9 and _was_faster(each):
                back = each.job.last_gpus
                if taken.isdisjoint(back) and _can_have(state, each, back):
                    taken.update(back)
                    yield self._to(state, each, back, "it was faster there")

    def moves(self, state: ClusterState) -> Iterator[Migrate]:
        """The first job that can run on fewer hosts, else the slowest that can avoid others."""
        if not state.free_gpus:
            return
        ready = [each for each in state.running.values() if self._ready(state, each)]
        for each in ready:
            gpus = _on_fewer_hosts(state, each)
            if gpus is not None:
                yield self._to(state, each, gpus, "on fewer hosts")
                return
        slow = [each for each in ready if _relative_speed(each) < 1.0 - TOLERANCE and len(each.gpus) <= state.free_gpus]
        for each in sorted(slow, key=_relative_speed):
            gpus = _on_other_hosts(state, each)
            if gpus is not None:
                yield self._to(state, each, gpus, f"at {_relative_speed(each):.2f} of its speed alone")
                return

    def wakes_at(self, state: ClusterState) -> float:
        """The end of the next trial."""
        ends = (self._tried_s(each) for each in state.running.values() if self._moved(each))
        return min((end for end in ends if end > state.time_s), default=inf)

    def _ready(self, state: ClusterState, each: Running) -> bool:
        if each.speed is None or each.share_gpus_with or each.bound or not each.job.preemptible:
            return False
        rest = 1 if each.job.last_speed is None else TRIALS_OF_REST
        return state.time_s - each.since_s >= rest * self.trial_s

    @staticmethod
    def _moved(each: Running) -> bool:
        """Whether the job ran elsewhere before, and how fast is known."""
        job = each.job
        return job.last_speed is not None and len(job.last_gpus) == len(each.gpus) and job.last_gpus != each.gpus

    def _tried_s(self, each: Running) -> float:
        return each.since_s + self.migrate_s + self.trial_s

    def _to(self, state: ClusterState, each: Running, gpus: tuple[str, ...], reason: str) -> Migrate:
        return Migrate(each.name, gpus, state.time_s, reason, pause_s=self.migrate_s)


def _relative_speed(each: Running) -> float:
    """Its speed as a share of that alone on the GPUs it has."""
    return (each.speed or 0.0) * each.job.gpus / len(each.gpus)


def _was_faster(each: Running) -> bool:
    return each.speed is not None and each.speed < (each.job.last_speed or 0.0) - TOLERANCE and not each.share_gpus_with


def _can_have(state: ClusterState, each: Running, gpus: tuple[str, ...]) -> bool:
    """Whether each of ``gpus`` is free or its own."""
    usable = state.free.copy()
    usable[state.held[each.name]] = True
    return bool(usable[state.structure.indices(gpus)].all())


def _hosts_of(state: ClusterState, each: Running) -> Ints:
    return np.unique(state.structure.host_of_gpu[state.held[each.name]])


def _on_fewer_hosts(state: ClusterState, each: Running) -> tuple[str, ...] | None:
    """GPUs on fewer hosts, its own included."""
    now = len(_hosts_of(state, each))
    if now <= -(-len(each.gpus) // int(state.structure.gpus_of_host.max())):
        return None
    without = state.end(each.name)
    return _placed(without, consolidate(state.structure, without.free_by_host, len(each.gpus)), now - 1)


def _on_other_hosts(state: ClusterState, each: Running) -> tuple[str, ...] | None:
    """Free GPUs on no more hosts than now, all of them others."""
    mine = _hosts_of(state, each)
    free = state.free_by_host.copy()
    free[mine] = 0
    return _placed(state, consolidate(state.structure, free, len(each.gpus)), len(mine))


def _placed(state: ClusterState, shares: list[Share] | None, most_hosts: int) -> tuple[str, ...] | None:
    return None if shares is None or len(shares) > most_hosts else placement_of(state, shares).gpus
