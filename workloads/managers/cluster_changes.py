"""Changes of a cluster, one after the other: one copy of its state at the beginning, then in place.

A run of n actions would otherwise copy what is known of all running jobs n times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from workloads.managers.actions import (
    Action,
    Ask,
    Demote,
    Loan,
    Migrate,
    Pack,
    Preempt,
    Promote,
    Reclaim,
    Requeue,
    Resize,
    Start,
)
from workloads.managers.gpu_index import Ints
from workloads.managers.jobs import Running, Waiting

if TYPE_CHECKING:
    from workloads.managers.cluster_state import ClusterState

_T = TypeVar("_T", bound=np.generic)


class Changes:
    """Begins with a copy of ``state``, which stays as it is. After a ``ValueError`` it is of no use any more."""

    def __init__(self, state: ClusterState) -> None:
        self._free, self._by_host, self._size = state.free.copy(), state.free_by_host.copy(), state.job_size.copy()
        self._running, self._held = dict(state.running), dict(state.held)
        self._free_gpus = state.free_gpus
        self._state = replace(
            state,
            free=_read_only(self._free),
            free_by_host=_read_only(self._by_host),
            job_size=_read_only(self._size),
            running=MappingProxyType(self._running),
            held=MappingProxyType(self._held),
        )

    @property
    def state(self) -> ClusterState:
        """The cluster after the changes so far. Do not keep it: the next change alters parts of it."""
        if self._state.free_gpus != self._free_gpus:
            self._state = replace(self._state, free_gpus=self._free_gpus)
        return self._state

    def apply(self, action: Action) -> None:
        """Carry out ``action``; ``ValueError`` if that is impossible."""
        match action:
            case Start():
                self.start(action.asked, action.gpus, action.bound, holding=action.pause_s == inf)
            case Preempt():
                self.end(action.job)
            case Resize() | Migrate():
                self._put_elsewhere(action)
            case Pack():
                self._pack(action)
            case Loan():
                self.join(action.hosts)
                self._state = replace(self._state, loaned=self._state.loaned | set(action.hosts))
            case Reclaim():
                self.leave(action.hosts)
                self._state = replace(self._state, loaned=self._state.loaned - set(action.hosts))
            case Demote():
                running = self._running[action.job]
                job = replace(running.job, demoted_s=(*running.job.demoted_s, action.time_s))
                self._running[action.job] = replace(running, job=job)
            case Requeue():
                if action.job in self._running:
                    self.end(action.job)
            case Ask() | Promote():
                pass

    def start(self, job: Waiting, gpus: tuple[str, ...], bound: tuple[str, ...] = (), *, holding: bool = False) -> None:
        """``ClusterState.start``."""
        if job.name in self._running:
            raise ValueError(f"job '{job.name}' runs already")
        self._put(Running(job if holding else self._begun(job), gpus, self._state.time_s, bound, holding=holding))

    def end(self, name: str) -> None:
        """``ClusterState.end``."""
        if name not in self._running:
            raise ValueError(f"job '{name}' does not run")
        partners, held = self._running.pop(name).share_gpus_with, self._held.pop(name)
        for other in partners:
            rest = tuple(partner for partner in self._running[other].share_gpus_with if partner != name)
            self._running[other] = replace(self._running[other], share_gpus_with=rest)
        if not partners:
            self._size[held] = 0
            self._set_free(held, True)

    def leave(self, hosts: Iterable[str]) -> None:
        """``ClusterState.leave``."""
        structure, absent = self._state.structure, self._state.absent
        going = [host for host in hosts if host not in absent]
        of_hosts = structure.gpus_on(going)
        taken = of_hosts[~self._free[of_hosts]]
        if len(taken):
            host = structure.hosts[int(structure.host_of_gpu[taken[0]])]
            raise ValueError(f"host '{host}' cannot leave: a job runs on it")
        self._set_free(of_hosts, False)
        self._state = replace(self._state, absent=absent | set(going))

    def join(self, hosts: Iterable[str]) -> None:
        """``ClusterState.join``."""
        absent = self._state.absent
        coming = [host for host in hosts if host in absent]
        self._set_free(self._state.structure.gpus_on(coming), True)
        self._state = replace(self._state, absent=absent - set(coming))

    def _put_elsewhere(self, action: Resize | Migrate) -> None:
        """A job that holds more of its GPUs now has held some since it held the first."""
        before, holding = self._running[action.job], action.pause_s == inf
        self.end(action.job)
        if before.holding and holding:
            self._put(Running(before.job, action.gpus, before.since_s, action.bound, holding=True))
        else:
            self.start(before.until(self._state.time_s), action.gpus, action.bound, holding=holding)

    def _pack(self, action: Pack) -> None:
        """Jobs already on these GPUs stay there; what their placer bound holds for all."""
        there = [self._running[name] for name in action.jobs if name in self._running]
        bound = next((each.bound for each in there if each.gpus == action.gpus), ())
        members = [self._member(job, action.gpus, bound) for job in action.asked]
        for each in there:
            self.end(each.name)
        for each in members:
            others = tuple(name for name in action.jobs if name != each.name)
            packed = replace(each, share_gpus_with=others, packed_s=self._state.time_s, speed=None)
            self._put(packed, shared=each is not members[0])

    def _member(self, job: Waiting, gpus: tuple[str, ...], bound: tuple[str, ...]) -> Running:
        running, now_s = self._running.get(job.name), self._state.time_s
        if running is None:
            return Running(self._begun(job), gpus, now_s, bound)
        if running.gpus != gpus:
            return Running(running.until(now_s), gpus, now_s, bound)
        return running

    def _begun(self, job: Waiting) -> Waiting:
        now_s = self._state.time_s
        if job.started_s is None:
            return replace(job, started_s=now_s)
        if not job.ran_s or job.waiting_since_s is None:
            return job
        return replace(job, waited_s=job.waited_s + now_s - job.waiting_since_s)

    def _put(self, job: Running, shared: bool = False) -> None:
        indices = self._state.structure.indices(job.gpus)
        if not shared:
            self._require_free(job, indices)
            self._size[indices] = len(indices)
            self._set_free(indices, False)
        self._running[job.name], self._held[job.name] = job, indices

    def _require_free(self, job: Running, indices: Ints) -> None:
        if len(set(job.gpus)) != len(job.gpus):
            raise ValueError(f"job '{job.name}': a GPU is listed twice")
        if not self._free[indices].all():
            taken = next(gpu for gpu, index in zip(job.gpus, indices, strict=True) if not self._free[index])
            raise ValueError(f"job '{job.name}': GPU '{taken}' is not free")

    def _set_free(self, gpus: Ints, to_free: bool) -> None:
        step = 1 if to_free else -1
        self._free[gpus] = to_free
        np.add.at(self._by_host, self._state.structure.host_of_gpu[gpus], step)
        self._free_gpus += step * len(gpus)


def _read_only(array: npt.NDArray[_T]) -> npt.NDArray[_T]:
    """The same array, for those that must not change it."""
    view = array.view()
    view.setflags(write=False)
    return view
