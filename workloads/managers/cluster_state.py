"""The state of a cluster as a value: which GPUs are free, which job runs where, which hosts are absent.

A change returns a new state; it copies an array of a byte per GPU and a table of the running jobs. Many changes in a
row copy once: :class:`.cluster_changes.Changes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from types import MappingProxyType

import numpy as np

from topologies.fabric import Fabric
from workloads.managers.actions import Action
from workloads.managers.capacities.gpu_types import ONE_TYPE, GpuTypes
from workloads.managers.cluster_changes import Changes
from workloads.managers.gpu_index import Bools, Ints, Structure, structure_of
from workloads.managers.jobs import Running, Waiting


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

    @property
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
