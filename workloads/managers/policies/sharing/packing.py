"""Gandiva's packing (Xiao et al., OSDI 2018): several jobs on a GPU, but only while jobs ask for more GPUs than exist.

Pairs of equal size are drawn at random, as in the implementation of Gandiva in Gavel's repository (Narayanan et al.,
OSDI 2020). A pair is tried if its stages promise a gain, measured, and separated if both together make less progress
than one alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf
from random import Random
from typing import ClassVar, Final

from workloads.managers.actions import Pack, Preempt
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import number, whole
from workloads.managers.policies.sharing.interleaving import worth_sharing

MIGRATE_S: Final = 1.5
"""The paper's "a second or two"."""
TRIAL_S: Final = 60.0
"""How long a pair is measured before it is judged: one of the paper's time slices."""
_ROUNDING: Final = 1e-6
_Stages = tuple[float, float]


class Partners:
    """Running jobs that others may join, by their GPUs and stages: few of these differ, so that a draw is fast."""

    def __init__(self, running: Iterable[Running], overhead: float, seed: int) -> None:
        self._overhead, self._seed = overhead, seed
        self._by_size: dict[int, dict[_Stages, list[Running]]] = {}
        for each in running:
            kinds = self._by_size.setdefault(len(each.gpus), {})
            kinds.setdefault((each.job.compute_s, each.job.communication_s), []).append(each)

    def take(self, job: Waiting) -> Running | None:
        """Draw one that ``job`` promises to gain with, which no other may join then; None if there is none."""
        mine = (job.compute_s, job.communication_s)
        kinds = self._by_size.get(job.gpus, {})
        lists = [found for stages, found in kinds.items() if found and _worth(stages, mine, self._overhead)]
        count = sum(map(len, lists))
        if not count:
            return None
        first = Random(f"{self._seed}|{job.name}").randrange(count)
        for place in range(count):  # past those that it was separated from
            found, index = _at(lists, (first + place) % count)
            if found[index].name not in job.apart_from:
                return found.pop(index)
        return None


class Packing(Policy):
    """Gangs; a job that does not fit joins a running one of its size, chosen by ``seed``, if that gains anything.

    ``overhead``: factor on the iteration time that the stages of packed jobs predict. After ``trial_s`` a pair that
    makes less progress than one job alone is separated: the last to join waits, and never shares with the other again.
    When no job waits and GPUs are free, one of a pair migrates there in ``migrate_s``.
    """

    name: ClassVar[str] = "packing"
    summary: ClassVar[str] = "gangs; under overload a job joins another of its size, and leaves when GPUs are free"
    uses: ClassVar[Mapping[str, str]] = {"stages": "packing"}
    changes_running: ClassVar[bool] = True
    measures_packs: ClassVar[bool] = True
    needs_remaining: ClassVar[bool] = False

    def __init__(
        self, *, overhead: float = 1.0, migrate_s: float = MIGRATE_S, trial_s: float = TRIAL_S, seed: int = 1
    ) -> None:
        self._overhead = number(self.name, "overhead", overhead, least=1)
        self._migrate_s = number(self.name, "migrate_s", migrate_s, least=0)
        self._trial_s = number(self.name, "trial_s", trial_s, least=0)
        self._seed = whole(self.name, "seed", seed)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """The end of the next trial."""
        return min((end for job in state.running.values() if (end := self._tried_s(job)) > state.time_s), default=inf)

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Separate pairs if no job waits, or if they do not gain; start what fits, pack what does not."""
        parted = [] if queued else list(self.unpacked(state))
        yield from parted
        yield from self.separated(state, {name for request in parted for name in _pack_of(state, request.job.name)})
        free, partners, blocked = state.free_gpus, self.partners(_alone(state)), set[str]()
        for entry in queued:
            job = entry.job
            if entry.line in blocked:
                continue
            if job.gpus <= free:
                free -= job.gpus
                yield PlacementRequest(job, job.gpus, line=entry.line, reason="its turn")
                continue
            partner = partners.take(job)
            if partner is not None:
                yield Pack((partner.job, job), partner.gpus, state.time_s, "overload")
            elif entry.line is not None:
                blocked.add(entry.line)

    def partners(self, running: Iterable[Running]) -> Partners:
        """Those of ``running`` that a job may join."""
        return Partners(running, self._overhead, self._seed)

    def _tried_s(self, job: Running) -> float:
        """When a packed job has been measured for long enough."""
        return -inf if not job.share_gpus_with or job.packed_s is None else job.packed_s + self._trial_s

    def separated(self, state: ClusterState, judged: set[str]) -> Iterator[Preempt]:
        """The later job of each pair whose trial is over and showed no gain; jobs ``judged`` are left out."""
        for each in state.running.values():
            if not each.share_gpus_with or each.name in judged or state.time_s < self._tried_s(each):
                continue
            members = [state.running[name] for name in _pack_of(state, each.name)]
            judged.update(member.name for member in members)
            speeds = [member.speed for member in members if member.speed is not None]
            if len(speeds) == len(members) and sum(speeds) < 1.0 - _ROUNDING:
                last = max(members, key=lambda member: (member.since_s, member.job.number))
                reason = f"together {sum(speeds):.2f} of one alone"
                yield Preempt(last.name, state.time_s, reason, apart_from=last.share_gpus_with)

    def unpacked(self, state: ClusterState) -> Iterator[PlacementRequest]:
        """One of each pair moves to free GPUs."""
        free, parted = state.free_gpus, set[str]()
        for each in state.running.values():
            if each.share_gpus_with and parted.isdisjoint(each.share_gpus_with) and len(each.gpus) <= free:
                free -= len(each.gpus)
                parted.add(each.name)
                yield PlacementRequest(
                    each.job, len(each.gpus), "migrate", reason="GPUs are free", pause_s=self._migrate_s
                )


def _pack_of(state: ClusterState, name: str) -> tuple[str, ...]:
    """A running job and those that it shares GPUs with."""
    return (name, *state.running[name].share_gpus_with)


def _alone(state: ClusterState) -> list[Running]:
    """Running jobs that share with no other job."""
    return [each for each in state.running.values() if not each.share_gpus_with]


def _at(lists: Sequence[list[Running]], index: int) -> tuple[list[Running], int]:
    """The list that holds the item ``index`` of all, and its place there."""
    for found in lists:
        if index < len(found):
            return found, index
        index -= len(found)
    raise IndexError(index)


@lru_cache(maxsize=4096)
def _worth(one: _Stages, other: _Stages, overhead: float) -> bool:
    stages = [one, other]
    return all(map(any, stages)) and worth_sharing(stages, (1.0, overhead))
