"""Muri with shared GPUs (Zhao et al., SIGCOMM 2022): in rounds, jobs that interleave well get the same GPUs.

:mod:`workloads.managers.policies.sharing.grouping` groups the jobs, by the resources that they have a profile of; here
the groups become actions of a cluster manager.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import ClassVar, Final

from workloads.managers.actions import Pack, Preempt
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob, Tick
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import listed, next_round, number, one_of, shown, whole
from workloads.managers.policies.preemption import Candidate, asked_by
from workloads.managers.policies.sharing.grouping import (
    MOST_JOBS,
    Grouping,
    Sharer,
    group_jobs,
    least_attained,
    srsf,
)
from workloads.managers.policies.sharing.resources import RESOURCES, stages_of, unprofiled, used_resources

ROUND_S: Final = 360.0
"""Six minutes, the interval between two schedules in Muri's repository."""
ORDERS: Final = {"remaining": srsf, "attained": least_attained}
"""Muri-S, where durations are known, and Muri-L."""


class MuriSharing(Policy):
    """Groups all jobs every ``round_s`` seconds; in between, free GPUs go to waiting jobs, in groups if they are few.

    ``order``: which jobs it admits first, the least ``remaining`` GPU-time (Muri-S) or the least ``attained`` (Muri-L).
    At most ``most_jobs`` share GPUs, each ahead of the next by one of the ``resources``; those that no job has a
    profile of do not count. ``overheads``: factors on the iteration of 1, 2, .. jobs that share. Resuming costs a
    preempted job ``restart_s``.
    """

    name: ClassVar[str] = "muri-sharing"
    summary: ClassVar[str] = (
        "up to four jobs that interleave storage, CPUs, GPUs and network share GPUs, matched in rounds"
    )
    changes_running: ClassVar[bool] = True
    heeds_evicts: ClassVar[bool] = False

    def __init__(
        self,
        *,
        order: str = "remaining",
        most_jobs: int = MOST_JOBS,
        resources: Sequence[str] = RESOURCES,
        overheads: Sequence[float] = (),
        round_s: float = ROUND_S,
        restart_s: float = 0.0,
    ) -> None:
        self._key = ORDERS[one_of(self.name, "order", order, ORDERS)]
        self._most_jobs = whole(self.name, "most_jobs", most_jobs, least=1)
        self._resources = _resources_of(resources)
        factors = listed(self.name, "overheads", overheads, "factors such as [1, 1.3]")
        self._overheads = tuple(number(self.name, "overheads", factor, least=1) for factor in factors)
        others = [name for name in self._resources if name in ("storage", "preprocessing")]
        profiles = {"profiles": f"interleaving {' and '.join(others)}"} if others else {}
        self.uses = {"stages": "interleaving compute and network", **profiles}
        self._round_s = number(self.name, "round_s", round_s, above=0)
        self._restart_s = number(self.name, "restart_s", restart_s, least=0)

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Group all jobs at a round, only the waiting ones at any other time."""
        waiting = {entry.job.name: entry.job for entry in queued}
        if isinstance(event, Tick):
            yield from self._regroup(state, waiting)
            return
        for group in self._grouped(list(waiting.values()), state.free_gpus, state.time_s).groups:
            yield self._place([waiting[each.name] for each in group])

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """The next round, if a job waits or shares."""
        if not waiting and not any(each.share_gpus_with for each in state.running.values()):
            return inf
        return next_round(state.time_s, self._round_s)

    def _grouped(self, candidates: Sequence[Candidate], gpus: int, now_s: float) -> Grouping:
        used = used_resources([asked_by(each) for each in candidates], self._resources)
        sharers = [_sharer(each, now_s, used) for each in candidates]
        return group_jobs(sharers, gpus, self._key, self._overheads, self._most_jobs)

    def _regroup(self, state: ClusterState, waiting: Mapping[str, Waiting]) -> Iterator[PolicyAction]:
        """Jobs whose group stays on their GPUs continue; the others are preempted, and placed again.

        A job that cannot be preempted stays, and so do those that share its GPUs.
        """
        now_s = state.time_s
        movable = {each.name: each for each in state.running.values() if _can_leave(state, each)}
        fixed = {gpu for each in state.running.values() if each.name not in movable for gpu in each.gpus}
        everybody: list[Candidate] = [*movable.values(), *waiting.values()]
        in_order = sorted(everybody, key=lambda each: asked_by(each).number)
        found = self._grouped(in_order, state.present_gpus - len(fixed), now_s)
        groups = [tuple(each.name for each in group) for group in found.groups]
        homes = list(zip(groups, _homes(groups, movable), strict=True))
        staying = {name for group, home in homes for name in group if name in movable and movable[name].gpus == home}
        for name in (name for name in movable if name not in staying):
            yield Preempt(name, now_s, "regrouped")
        asked = {**waiting, **{name: each.until(now_s) for name, each in movable.items()}}
        asked |= {name: movable[name].job for name in staying}
        for group, home in homes:
            if home is not None and not staying.issuperset(group):
                members = tuple(asked[name] for name in group)
                yield Pack(members, home, now_s, self._reason(members), self._pause_s(members))
        for group, home in homes:
            if home is None:
                yield self._place([asked[name] for name in group])

    def _place(self, members: Sequence[Waiting]) -> PlacementRequest:
        first, *others = members
        reason, pause_s = self._reason(members), self._pause_s(members)
        return PlacementRequest(first, first.gpus, reason=reason, pause_s=pause_s, sharers=tuple(others))

    def _reason(self, members: Sequence[Waiting]) -> str:
        """Why, and of which resources there is no profile."""
        missing = unprofiled(members, self._resources)
        return ("interleaves" if len(members) > 1 else "its turn") + (f"; no profile of {missing}" if missing else "")

    def _pause_s(self, members: Sequence[Waiting]) -> float:
        return self._restart_s if any(each.started_s is not None for each in members) else 0.0


def _can_leave(state: ClusterState, each: Running) -> bool:
    """Whether it and all that share its GPUs may be stopped: those beside a job that stays could not be regrouped."""
    beside = (state.running[name] for name in each.share_gpus_with)
    return each.job.preemptible and all(other.job.preemptible for other in beside)


def _homes(groups: Sequence[tuple[str, ...]], running: Mapping[str, Running]) -> list[tuple[str, ...] | None]:
    """The GPUs of each group: those of its first member that runs, if no group before has them; else None."""
    claimed: set[tuple[str, ...]] = set()
    homes: list[tuple[str, ...] | None] = []
    for group in groups:
        there = (running[name].gpus for name in group if name in running)
        home = next((gpus for gpus in there if gpus not in claimed), None)
        if home is not None:
            claimed.add(home)
        homes.append(home)
    return homes


def _sharer(each: Candidate, now_s: float, resources: Sequence[str]) -> Sharer:
    """The job as Muri's grouping sees it; an unknown remaining time counts as infinite."""
    job = asked_by(each)
    left_s = each.left_s(now_s) if isinstance(each, Running) else each.left_s
    attained = each.attained_service_s(now_s) if isinstance(each, Running) else each.attained_service_s
    return Sharer(job.name, job.gpus, stages_of(job, resources), inf if left_s is None else left_s, attained / job.gpus)


def _resources_of(given: object) -> tuple[str, ...]:
    """The option ``resources``, in the order of :data:`RESOURCES`; ``ValueError``, one line, if one is none of them."""
    of = f"one or more of {', '.join(RESOURCES)}"
    named = listed(MuriSharing.name, "resources", given, of)
    if not named or any(name not in RESOURCES for name in named):
        raise ValueError(f"option 'resources' of muri-sharing must be a list of {of}, not '{shown(given)}'")
    return tuple(name for name in RESOURCES if name in named)
