"""The state of a cluster as a value: which GPUs are free, which job runs where, which hosts are absent.

A change returns a new state; it copies an array of a byte per GPU and a table of the running jobs. Many changes in a
row copy once: :class:`Changes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from topologies.fabric import Fabric
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
from workloads.managers.capacities.gpu_types import ONE_TYPE, GpuTypes
from workloads.managers.gpu_index import Bools, Ints, Structure, structure_of
from workloads.managers.jobs import Running, Waiting

_T = TypeVar("_T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class ClusterState:
    """The cluster at a moment; read-only."""

    structure: Structure
    """The fabric in numbers: indices of GPUs, hosts and ToRs."""
    time_s: float
    """Seconds of the run or trace."""
    free: Bools
    """Shape (GPUs,), in the fabric's order: whether each is free; GPUs of absent hosts are not."""
    free_by_host: Ints
    """Shape (hosts,): how many GPUs of each are free."""
    job_size: Ints
    """Shape (GPUs,): how many GPUs the job on each has; 0 where there is no job."""
    free_gpus: int
    """How many GPUs are free."""
    running: MappingProxyType[str, Running]
    """Name -> running job, in order of start."""
    held: MappingProxyType[str, Ints] = field(repr=False)
    """Name -> indices of a running job's GPUs."""
    absent: frozenset[str] = frozenset()
    """Names of hosts that are not in the cluster now."""
    asking: tuple[Waiting, ...] = ()
    """The jobs that the queue lets start, in its order, while a manager decides."""
    decided_s: float = -inf
    """When the manager last decided, in seconds."""
    loaned: frozenset[str] = frozenset()
    """Names of hosts that joined while the cluster ran, and may have to go back."""
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)
    """Job -> queue that contains it -> GPUs that all jobs of that queue may have, while a manager decides."""

    @property
    def fabric(self) -> Fabric:
        """The fabric of the cluster."""
        return self.structure.fabric

    @cached_property
    def present_gpus(self) -> int:
        """GPUs of all hosts that are present."""
        return len(self.structure.gpus) - len(self.structure.gpus_on(self.absent))

    def most_gpus(self, job: str) -> float:
        """Return how many GPUs its queues let ``job`` have beside the other jobs that run; infinite without a limit."""
        limits = self.limits.get(job)
        if not limits:
            return inf
        own = self.running[job].claimed_gpus if job in self.running else 0
        return min(most - self._used_of_queues.get(queue, 0) + own for queue, most in limits.items())

    @cached_property
    def _used_of_queues(self) -> Mapping[str, int]:
        used: dict[str, int] = {}
        for name, running in self.running.items():
            for queue in self.limits.get(name, ()):
                used[queue] = used.get(queue, 0) + running.claimed_gpus
        return used

    def free_on(self, host: str) -> tuple[str, ...]:
        """The free GPUs of a host, in order."""
        index = self.structure.host_index[host]
        first = int(self.structure.first_gpu[index])
        mine = self.free[first : first + int(self.structure.gpus_of_host[index])]
        return tuple(self.structure.gpus[first + offset] for offset in np.flatnonzero(mine).tolist())

    def at(self, time_s: float) -> ClusterState:
        """Return the same at another time."""
        return self if time_s == self.time_s else replace(self, time_s=time_s)

    def start(
        self, job: Waiting, gpus: tuple[str, ...], bound: tuple[str, ...] = (), *, holding: bool = False
    ) -> ClusterState:
        """Return the state with ``job`` on ``gpus``; ``ValueError`` if it already runs or a GPU is not free.

        ``holding``: it computes nothing there, and waits for the rest of its GPUs.
        """
        changes = Changes(self)
        changes.start(job, gpus, bound, holding=holding)
        return changes.state

    def end(self, name: str) -> ClusterState:
        """Return the state without the job ``name``; ``ValueError`` if it does not run."""
        changes = Changes(self)
        changes.end(name)
        return changes.state

    def leave(self, hosts: Iterable[str]) -> ClusterState:
        """Return the state without ``hosts``; ``ValueError`` if a job runs on one of them."""
        changes = Changes(self)
        changes.leave(hosts)
        return changes.state

    def join(self, hosts: Iterable[str]) -> ClusterState:
        """Return the state with ``hosts`` that were absent; those present stay."""
        changes = Changes(self)
        changes.join(hosts)
        return changes.state

    def jobs_on(self, hosts: Iterable[str]) -> tuple[str, ...]:
        """Names of the jobs that have a GPU on one of ``hosts``, in order of their start."""
        there = np.zeros(len(self.structure.gpus), dtype=np.bool_)
        there[self.structure.gpus_on(hosts)] = True
        return tuple(name for name, gpus in self.held.items() if there[gpus].any())

    def after(self, action: Action) -> ClusterState:
        """Return the state after ``action``; ``ValueError`` if it cannot be carried out."""
        changes = Changes(self)
        changes.apply(action)
        return changes.state

    def measured(self, speeds: Mapping[str, float | None]) -> ClusterState:
        """Return the state with the ``speeds`` of running jobs, as shares of those alone; None: not measured yet."""
        running = {name: replace(self.running[name], speed=speed) for name, speed in speeds.items()}
        return replace(self, running=MappingProxyType({**self.running, **running})) if speeds else self

    def with_jobs(self, jobs: Mapping[str, Waiting]) -> ClusterState:
        """Return the state in which these running jobs are known as they are in ``jobs``."""
        running = {name: replace(self.running[name], job=job) for name, job in jobs.items()}
        return replace(self, running=MappingProxyType({**self.running, **running})) if jobs else self

    def with_known_left(self, left_s: Mapping[str, float]) -> ClusterState:
        """Return the state in which the seconds left of running jobs are known to be ``left_s`` now."""
        running = {
            name: replace(self.running[name], known_left_s=seconds, known_at_s=self.time_s)
            for name, seconds in left_s.items()
        }
        return replace(self, running=MappingProxyType({**self.running, **running})) if left_s else self


def empty_cluster(
    fabric: Fabric, absent: Iterable[str] = (), time_s: float = 0.0, gpu_types: GpuTypes = ONE_TYPE
) -> ClusterState:
    """Return the cluster of ``fabric`` without jobs; ``absent`` hosts are not present yet."""
    structure = structure_of(fabric, gpu_types)
    state = ClusterState(
        structure,
        time_s,
        free=np.ones(len(structure.gpus), dtype=np.bool_),
        free_by_host=structure.gpus_of_host,
        job_size=np.zeros(len(structure.gpus), dtype=np.intp),
        free_gpus=len(structure.gpus),
        running=MappingProxyType({}),
        held=MappingProxyType({}),
    )
    return state.leave(absent)


class Changes:
    """Changes of a cluster, one after the other: one copy of its state at the beginning, then in place.

    A run of n actions would otherwise copy what is known of all running jobs n times. ``state`` stays as it is. After a
    ``ValueError`` the changes are of no use any more.
    """

    def __init__(self, state: ClusterState) -> None:
        self._free, self._by_host, self._size = state.free.copy(), state.free_by_host.copy(), state.job_size.copy()
        self._running, self._held = dict(state.running), dict(state.held)
        self._free_gpus, self._changed = state.free_gpus, False
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
        if self._changed:  # what a state has counted once does not hold any more
            self._state, self._changed = replace(self._state, free_gpus=self._free_gpus), False
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
                self._running[action.job], self._changed = replace(running, job=job), True
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
        self._changed = True
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
        self._running[job.name], self._held[job.name], self._changed = job, indices, True

    def _require_free(self, job: Running, indices: Ints) -> None:
        if len(set(job.gpus)) != len(job.gpus):
            raise ValueError(f"job '{job.name}': a GPU is listed twice")
        if not self._free[indices].all():
            taken = next(gpu for gpu, index in zip(job.gpus, indices, strict=True) if not self._free[index])
            raise ValueError(f"job '{job.name}': GPU '{taken}' is not free")

    def _set_free(self, gpus: Ints, to_free: bool) -> None:
        step = 1 if to_free else -1
        self._free[gpus], self._changed = to_free, True
        np.add.at(self._by_host, self._state.structure.host_of_gpu[gpus], step)
        self._free_gpus += step * len(gpus)


def _read_only(array: npt.NDArray[_T]) -> npt.NDArray[_T]:
    """The same array, for those that must not change it."""
    view = array.view()
    view.setflags(write=False)
    return view
