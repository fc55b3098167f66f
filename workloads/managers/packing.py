"""Gandiva's packing (Xiao et al., OSDI 2018): several jobs on a GPU, but only while more are asked for than there are.

Which of them is left to chance, as in the stand-in for Gandiva in Gavel's repository (Narayanan et al., OSDI 2020):
pairs of equal size at random. Gandiva packs, measures and undoes; here what a pair will gain is computed beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import ClassVar, Final

from workloads.managers.actions import Pack
from workloads.managers.cluster import ClusterState
from workloads.managers.jobs import Running, Waiting
from workloads.managers.muri_sharing import worth_sharing
from workloads.managers.options import number
from workloads.managers.points import Event, Turn, Want, Wish

MIGRATE_S: Final = 1.5
"""The paper's "a second or two"."""


class Packing:
    """Gangs; a job that does not fit joins a running one of its size, chosen by ``seed``, if that gains anything.

    ``overhead``: how many times as long the iterations of packed jobs take beside what their stages say. When nobody
    waits any more and GPUs are free, one of a pair moves there in ``migrate_s``.
    """

    name: ClassVar[str] = "packing"
    summary: ClassVar[str] = "gangs; under overload a job joins another of its size, and leaves when GPUs are free"
    changes_running: ClassVar[bool] = True

    def __init__(self, *, overhead: float = 1.0, migrate_s: float = MIGRATE_S, seed: int = 1) -> None:
        self._overhead = number(self.name, "overhead", overhead, least=1)
        self._migrate_s = number(self.name, "migrate_s", migrate_s, least=0)
        self._seed = seed

    def decide(self, state: ClusterState, turns: Sequence[Turn], event: Event) -> Iterator[Wish]:
        """Start what fits, pack what does not; with nobody left to wait, take pairs apart."""
        if not turns:
            yield from self._apart(state)
        free, partners, standing = state.free_gpus, _alone(state), set[str]()
        for turn in turns:
            job = turn.job
            if turn.line in standing:
                continue
            if job.gpus <= free:
                free -= job.gpus
                yield Want(job, job.gpus, line=turn.line, reason="its turn")
                continue
            partner = self._partner(job, partners)
            if partner is not None:
                partners.remove(partner)
                yield Pack((partner.job, job), partner.gpus, state.time_s, "overload")
            elif turn.line is not None:
                standing.add(turn.line)

    def _partner(self, job: Waiting, running: Sequence[Running]) -> Running | None:
        fitting = [each for each in running if len(each.gpus) == job.gpus and self._worth(each.job, job)]
        return Random(f"{self._seed}|{job.name}").choice(fitting) if fitting else None

    def _worth(self, one: Waiting, other: Waiting) -> bool:
        stages = [(each.compute_s, each.communication_s) for each in (one, other)]
        return all(map(any, stages)) and worth_sharing(stages, (1.0, self._overhead))

    def _apart(self, state: ClusterState) -> Iterator[Want]:
        free, parted = state.free_gpus, set[str]()
        for each in state.running.values():
            if each.packed_with and parted.isdisjoint(each.packed_with) and len(each.gpus) <= free:
                free -= len(each.gpus)
                parted.add(each.name)
                yield Want(each.job, len(each.gpus), "migrate", reason="GPUs are free", pause_s=self._migrate_s)


def _alone(state: ClusterState) -> list[Running]:
    """Running jobs that share with nobody."""
    return [each for each in state.running.values() if not each.packed_with]
