"""The state of a cluster as a value: which GPUs are free, which job runs where, which hosts are absent.

A change returns a new state; it copies an array of a byte per GPU and a table of the running jobs, and
touches only the GPUs that change hands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType

import numpy as np

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
from workloads.managers.gpu_index import Bools, Ints, Structure, frozen, structure_of
from workloads.managers.jobs import Running, Waiting

_NONE = frozen(np.empty(0, dtype=np.intp))


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

    @property
    def fabric(self) -> Fabric:
        """The fabric of the cluster."""
        return self.structure.fabric

    @property
    def present_gpus(self) -> int:
        """GPUs of all hosts that are present."""
        return len(self.structure.gpus) - len(self._gpus_of(self.absent))

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
        if job.name in self.running:
            raise ValueError(f"job '{job.name}' runs already")
        asked = job if holding else self._begun(job)
        return self._with(Running(asked, gpus, self.time_s, bound, holding=holding))

    def end(self, name: str) -> ClusterState:
        """Return the state without the job ``name``; ``ValueError`` if it does not run."""
        if name not in self.running:
            raise ValueError(f"job '{name}' does not run")
        partners = self.running[name].share_gpus_with
        running, held = self.running.copy(), self.held.copy()
        del running[name], held[name]
        for other in partners:
            rest = tuple(partner for partner in running[other].share_gpus_with if partner != name)
            running[other] = replace(running[other], share_gpus_with=rest)
        given = _NONE if partners else self.held[name]
        return self._changed(given, True, running, held)

    def leave(self, hosts: Iterable[str]) -> ClusterState:
        """Return the state without ``hosts``; ``ValueError`` if a job runs on one of them."""
        going = [host for host in hosts if host not in self.absent]
        of_hosts = self._gpus_of(going)
        taken = of_hosts[~self.free[of_hosts]]
        if len(taken):
            host = self.structure.hosts[int(self.structure.host_of_gpu[taken[0]])]
            raise ValueError(f"host '{host}' cannot leave: a job runs on it")
        state = self._changed(of_hosts, False, self.running.copy(), self.held.copy())
        return replace(state, absent=self.absent | set(going))

    def join(self, hosts: Iterable[str]) -> ClusterState:
        """Return the state with ``hosts`` that were absent; those present stay."""
        coming = [host for host in hosts if host in self.absent]
        state = self._changed(self._gpus_of(coming), True, self.running.copy(), self.held.copy())
        return replace(state, absent=self.absent - set(coming))

    def jobs_on(self, hosts: Iterable[str]) -> tuple[str, ...]:
        """Names of the jobs that have a GPU on one of ``hosts``, in order of their start."""
        there = np.zeros(len(self.structure.gpus), dtype=np.bool_)
        there[self._gpus_of(hosts)] = True
        return tuple(name for name, gpus in self.held.items() if there[gpus].any())

    def after(self, action: Action) -> ClusterState:
        """Return the state after ``action``; ``ValueError`` if it cannot be carried out."""
        match action:
            case Start():
                return self.start(action.asked, action.gpus, action.bound, holding=action.pause_s == inf)
            case Preempt():
                return self.end(action.job)
            case Resize() | Migrate():
                return self._on_others(action)
            case Pack():
                return self._packed(action)
            case Loan():
                return replace(self.join(action.hosts), loaned=self.loaned | set(action.hosts))
            case Reclaim():
                return replace(self.leave(action.hosts), loaned=self.loaned - set(action.hosts))
            case Demote():
                job = self.running[action.job].job
                return self.with_jobs({job.name: replace(job, demoted_s=(*job.demoted_s, action.time_s))})
            case Requeue():
                return self.end(action.job) if action.job in self.running else self
            case Ask() | Promote():
                return self

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

    def _on_others(self, action: Resize | Migrate) -> ClusterState:
        """A job that holds more of its GPUs now has held some since it held the first."""
        before, holding = self.running[action.job], action.pause_s == inf
        state = self.end(action.job)
        if before.holding and holding:
            return state._with(Running(before.job, action.gpus, before.since_s, action.bound, holding=True))
        return state.start(before.until(self.time_s), action.gpus, action.bound, holding=holding)

    def _packed(self, action: Pack) -> ClusterState:
        """Jobs already on these GPUs stay there; what their placer bound holds for all."""
        there = [self.running[name] for name in action.jobs if name in self.running]
        bound = next((each.bound for each in there if each.gpus == action.gpus), ())
        members = [self._member(job, action.gpus, bound) for job in action.asked]
        state = self
        for each in there:
            state = state.end(each.name)
        for each in members:
            others = tuple(name for name in action.jobs if name != each.name)
            packed = replace(each, share_gpus_with=others, packed_s=self.time_s, speed=None)
            state = state._with(packed, shared=each is not members[0])
        return state

    def _member(self, job: Waiting, gpus: tuple[str, ...], bound: tuple[str, ...]) -> Running:
        running = self.running.get(job.name)
        if running is None:
            return Running(self._begun(job), gpus, self.time_s, bound)
        if running.gpus != gpus:
            return Running(running.until(self.time_s), gpus, self.time_s, bound)
        return running

    def _begun(self, job: Waiting) -> Waiting:
        if job.started_s is None:
            return replace(job, started_s=self.time_s)
        if not job.ran_s or job.waiting_since_s is None:
            return job
        return replace(job, waited_s=job.waited_s + self.time_s - job.waiting_since_s)

    def _with(self, job: Running, shared: bool = False) -> ClusterState:
        indices = self.structure.indices(job.gpus)
        if not shared:
            self._require_free(job, indices)
        running, held = self.running | {job.name: job}, self.held | {job.name: indices}
        return self._changed(_NONE if shared else indices, False, running, held)

    def _require_free(self, job: Running, indices: Ints) -> None:
        if len(set(job.gpus)) != len(job.gpus):
            raise ValueError(f"job '{job.name}': a GPU is listed twice")
        if not self.free[indices].all():
            taken = next(gpu for gpu, index in zip(job.gpus, indices, strict=True) if not self.free[index])
            raise ValueError(f"job '{job.name}': GPU '{taken}' is not free")

    def _changed(self, gpus: Ints, to_free: bool, running: dict[str, Running], held: dict[str, Ints]) -> ClusterState:
        free, by_host = self.free.copy(), self.free_by_host.copy()
        free[gpus] = to_free
        step = 1 if to_free else -1
        np.add.at(by_host, self.structure.host_of_gpu[gpus], step)
        free.setflags(write=False)
        by_host.setflags(write=False)
        return ClusterState(
            self.structure,
            self.time_s,
            free,
            by_host,
            self.free_gpus + step * len(gpus),
            MappingProxyType(running),
            MappingProxyType(held),
            self.absent,
            self.asking,
            self.decided_s,
            self.loaned,
        )

    def _gpus_of(self, hosts: Iterable[str]) -> Ints:
        wanted = np.zeros(len(self.structure.hosts), dtype=np.bool_)
        for host in hosts:
            if host not in self.structure.host_index:
                raise ValueError(f"there is no host '{host}' in fabric {self.fabric.name}")
            wanted[self.structure.host_index[host]] = True
        return np.flatnonzero(wanted[self.structure.host_of_gpu])


def empty_cluster(
    fabric: Fabric, absent: Iterable[str] = (), time_s: float = 0.0, gpu_types: GpuTypes = ONE_TYPE
) -> ClusterState:
    """Return the cluster of ``fabric`` without jobs; ``absent`` hosts are not present yet."""
    structure = structure_of(fabric, gpu_types)
    free = np.ones(len(structure.gpus), dtype=np.bool_)
    state = ClusterState(
        structure, time_s, free, structure.gpus_of_host, len(structure.gpus), MappingProxyType({}), MappingProxyType({})
    )
    return state.leave(absent)
