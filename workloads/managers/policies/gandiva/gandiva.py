"""Gandiva (Xiao et al., OSDI 2018): time slices, packing, growing and introspective migration as one policy.

Under overload a job joins another on its GPUs if that promises a gain, else all take turns. While no job waits, packed
jobs separate, elastic ones grow on their hosts, and jobs move to better places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import ClassVar

from workloads.managers.actions import Pack, Resize
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import CapacityChanged, Ended, Event, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import flag, number, whole
from workloads.managers.policies.gandiva.grow_shrink import LOOK_S, GrowShrink, extra_gpus, grown_jobs
from workloads.managers.policies.gandiva.introspection import Introspection
from workloads.managers.policies.gandiva.suspension import SuspendCosts, change_jobs
from workloads.managers.policies.gandiva.time_slicing import MIGRATE_S, SLICE_S, SUSPEND_S
from workloads.managers.policies.sharing.packing import TRIAL_S, Packing

Unit = tuple[Running, ...]
"""A running job, or those that share GPUs: they take turns together."""


class Gandiva(Policy):
    """Options as those of ``time-slices``, ``packing`` and ``grow-shrink``; ``migrate`` False: no job moves to try."""

    name: ClassVar[str] = "gandiva"
    summary: ClassVar[str] = "time slices, packing, growing and introspective migration together"
    uses: Mapping[str, str] = {"elastic": "growing", "stages": "packing"}
    changes_running: ClassVar[bool] = True
    heeds_evicts: ClassVar[bool] = False
    measures_packs: ClassVar[bool] = True
    measures_progress: ClassVar[bool] = True
    needs_remaining: ClassVar[bool] = False

    def __init__(
        self,
        *,
        slice_s: float = SLICE_S,
        suspend_s: float = SUSPEND_S,
        migrate_s: float = MIGRATE_S,
        overhead: float = 1.0,
        trial_s: float = TRIAL_S,
        look_s: float = LOOK_S,
        migrate: bool = True,
        seed: int = 1,
    ) -> None:
        self._slice_s = number(self.name, "slice_s", slice_s, above=0)
        self._costs = SuspendCosts(
            number(self.name, "suspend_s", suspend_s, least=0), number(self.name, "migrate_s", migrate_s, least=0)
        )
        trial_s = number(self.name, "trial_s", trial_s, least=0)
        look_s = number(self.name, "look_s", look_s, above=0)
        self._packing = Packing(
            overhead=number(self.name, "overhead", overhead, least=1),
            migrate_s=migrate_s,
            trial_s=trial_s,
            seed=whole(self.name, "seed", seed),
        )
        self._growing = GrowShrink(look_s=look_s, restart_s=suspend_s)
        self._introspection = Introspection(trial_s, migrate_s) if flag(self.name, "migrate", migrate) else None

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Undo what did not help; then let waiting jobs start, join or take their turn, or use idle GPUs."""
        if queued:
            yield from self._share_out(state, [entry.job for entry in queued])
            return
        for actions in map(list, self._at_leisure(state, event)):
            if actions:
                yield from actions
                return

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """The end of a slice, if a job waits for it, or of a trial, or the next look at idle GPUs."""
        trial = self._packing.wakes_at(state, waiting)
        if waiting:
            now_s = state.time_s
            ends = (each.since_s + self._slice_s for each in state.running.values())
            return min(trial, *(end if end > now_s + 1e-9 else now_s + self._slice_s for end in ends), inf)
        moved = inf if self._introspection is None else self._introspection.wakes_at(state)
        return min(trial, moved, self._growing.wakes_at(state, waiting))

    def _at_leisure(self, state: ClusterState, event: Event) -> Iterator[Iterator[PolicyAction]]:
        """What to do while no job waits, the first that applies: each may use all free GPUs."""
        yield self._packing.unpacked(state)
        yield self._packing.separated(state, set())
        if self._introspection is not None:
            yield self._introspection.undone(state)
            if isinstance(event, Ended | CapacityChanged):  # to GPUs that have become free
                yield self._introspection.moves(state)
        yield self._growing.growing(state)

    def _share_out(self, state: ClusterState, waiting: Sequence[Waiting]) -> Iterator[PolicyAction]:
        parted = list(self._packing.separated(state, set()))
        yield from parted
        out = {action.job for action in parted}
        units = _units(state, out)
        kept = [unit for unit in units if not self._expired(unit, state.time_s)]
        ended = [unit for unit in units if self._expired(unit, state.time_s)]
        stay, begin = self._turns(state, kept, ended, waiting)
        names = {each.name for unit in stay for each in unit}
        suspended = [each for unit in ended for each in unit if each.name not in names]
        shrunk = list(self._shrunk(state, stay, suspended, begin))
        yield from shrunk
        given = [gpu for action in shrunk for gpu in state.running[action.job].gpus if gpu not in action.gpus]
        yield from change_jobs(state, suspended, begin, "its slice", self._costs, given)
        resized, begun = {action.job for action in shrunk}, {job.name for job in begin}
        single = (unit[0] for unit in stay if len(unit) == 1)
        alone = [each for each in single if each.name not in resized and not extra_gpus(each)]
        yield from self._packed(state, alone, [job for job in waiting if job.name not in begun])

    def _turns(
        self, state: ClusterState, kept: Sequence[Unit], ended: Sequence[Unit], waiting: Sequence[Waiting]
    ) -> tuple[list[Unit], list[Waiting]]:
        """The units that go on, and the waiting jobs that begin: of those whose turn it can be, that ran least."""
        room = state.present_gpus - sum(unit[0].job.gpus for unit in kept)
        stay, begin = list(kept), list[Waiting]()
        candidates: list[tuple[tuple[float, int], Unit | Waiting]] = [
            *((_had(unit, state.time_s), unit) for unit in ended),
            *(((job.ran_s, job.number), job) for job in waiting),
        ]
        for _, each in sorted(candidates, key=lambda item: item[0]):
            gpus = each.gpus if isinstance(each, Waiting) else each[0].job.gpus
            if gpus > room:
                continue
            room -= gpus
            if isinstance(each, Waiting):
                begin.append(each)
            else:
                stay.append(each)
        return stay, begin

    def _shrunk(
        self, state: ClusterState, stay: Sequence[Unit], suspended: Sequence[Running], begin: Sequence[Waiting]
    ) -> Iterator[Resize]:
        """The jobs that grew last give back, until those that begin have room."""
        names = {each.name for unit in stay for each in unit}
        going = {each.gpus: len(each.gpus) for each in suspended}
        lacking = sum(job.gpus for job in begin) - state.free_gpus - sum(going.values())
        grown = [each for each in grown_jobs(state) if each.name in names]
        while lacking > 0 and grown:
            each = grown.pop()
            lacking -= extra_gpus(each)
            yield self._growing.shrinking(state, each, "others wait")

    def _packed(self, state: ClusterState, alone: Sequence[Running], waiting: Sequence[Waiting]) -> Iterator[Pack]:
        """Jobs for which there is no room join others, if that gains anything."""
        partners = self._packing.partners(alone)
        for job in waiting:
            partner = partners.take(job)
            if partner is not None:
                pause_s = 0.0 if job.started_s is None else self._costs.suspend_s + self._costs.migrate_s
                yield Pack((partner.job, job), partner.gpus, state.time_s, "overload", pause_s)

    def _expired(self, unit: Unit, now_s: float) -> bool:
        """Whether its slice is over; a job that joins gets a whole one."""
        return now_s >= max(each.since_s for each in unit) + self._slice_s - 1e-9


def _units(state: ClusterState, out: set[str]) -> list[Unit]:
    """Running jobs by the GPUs that they share, without those that are ``out``."""
    seen, units = set(out), list[Unit]()
    for each in state.running.values():
        if each.name not in seen:
            others = (state.running[name] for name in each.share_gpus_with if name not in seen)
            unit = (each, *others)
            seen.update(member.name for member in unit)
            units.append(unit)
    return units


def _had(unit: Unit, now_s: float) -> tuple[float, int]:
    """Seconds that the job that ran least has run, and its order of submission."""
    return min((each.job.ran_s + now_s - each.since_s, each.job.number) for each in unit)
