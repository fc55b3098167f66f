"""Gandiva's packing (Xiao et al., OSDI 2018): several jobs on a GPU, but only while jobs ask for more GPUs than exist.

Pairs of equal size are drawn at random, as in the implementation of Gandiva in Gavel's repository (Narayanan et al.,
OSDI 2020). A pair is tried if its stages promise a gain, measured, and separated if both together make less progress
than one alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import ClassVar, Final

from workloads.managers.actions import Pack, Preempt
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import number, whole
from workloads.managers.policies.sharing.partners import Partners

MIGRATE_S: Final = 1.5
"""The paper's "a second or two"."""
TRIAL_S: Final = 60.0
"""How long a pair is measured before it is judged: one of the paper's time slices."""
_ROUNDING: Final = 1e-6


class Packing(Policy):
    """Gangs; a job that does not fit joins a running one of its size, chosen by ``seed``, if that gains anything.

    ``overhead``: factor on the iteration time that the stages of packed jobs predict. After ``trial_s`` a pair that
    makes less progress than one job alone is separated: the last to join waits, and never shares with the other again.
    When no job waits and GPUs are free, one of a pair migrates there in ``migrate_s``.
    """

    name: ClassVar[str] = "packing"
    summary: ClassVar[str] = "gangs; under overload a job joins another of its size, and leaves when GPUs are free"
    uses: Mapping[str, str] = {"stages": "packing"}
    changes_running: ClassVar[bool] = True
    heeds_evicts: ClassVar[bool] = False
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
