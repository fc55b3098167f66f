"""Lyra's GPUs by type: which type a job's least size fits on, and how extra GPUs of each type are shared out.

A job that asks for a type (``Waiting.gpu_type``) counts only GPUs of that type. Others have GPUs of one type, or of
several where the cluster's types have a ``mixed_efficiency`` (Lyra's heterogeneous training, EuroSys 2023).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from workloads.managers.cluster_state import ClusterState
from workloads.managers.jobs import Running, Waiting

Values = Mapping[str, Sequence[float]]
Choose = Callable[[int, Values], dict[str, int]]
"""Capacity, and job -> seconds that 1, 2, .. GPUs more save it -> GPUs for each job."""


@dataclass
class Demand:
    """A job of ``least`` to ``most`` GPUs; ``held``: type -> GPUs that it is to have, its least size at first.

    ``work_s``: seconds left on one GPU of speed 1. ``now``: GPUs that it has, None if it waits.
    """

    job: Waiting
    least: int
    most: int
    work_s: float
    held: Counter[str] = field(default_factory=Counter)
    now: int | None = None


class Pools:
    """The present GPUs by type; ``free`` of them are beyond the least size of all jobs considered so far."""

    def __init__(self, state: ClusterState, on_loan_first: bool = True) -> None:
        structure = state.structure
        self._structure, self._types = structure, structure.gpu_types
        self._speeds = structure.speed_of_type
        self._sizes = structure.gpus_of_type
        self.free: Counter[str] = Counter(self._sizes)
        for host in state.absent:
            self.free[self._types.type_of(host)] -= int(structure.gpus_of_host[structure.host_index[host]])
        on_loan = {self._types.type_of(host) for host in state.loaned if host not in state.absent}
        self._order = sorted(self._speeds, key=lambda name: (name in on_loan, -self._speeds[name], name))
        reverse = sorted(self._speeds, key=lambda name: (name not in on_loan, -self._speeds[name], name))
        self._of_elastic = reverse if on_loan_first else self._order

    def hold(self, running: Running, base: Iterable[str], demand: Demand) -> None:
        """Take the base workers of a running job from what is free."""
        structure = self._structure
        hosts = structure.host_of_gpu[structure.indices(base)].tolist()
        demand.held = Counter(structure.type_of_host[host] for host in hosts)
        demand.now = len(running.gpus)
        self.free.subtract(demand.held)

    def fits(self, demand: Demand) -> bool:
        """Take the least size of a job from a type with room for it; False if there is none.

        Elastic jobs prefer types that are on loan. A job larger than any type alone takes from all, as does one that
        may have several types where none has room.
        """
        job, least = demand.job, demand.least
        order = self._of_elastic if demand.most > least else self._order
        allowed = [job.gpu_type] if job.gpu_type else order
        for name in allowed:
            if self.free[name] >= least:
                self._take(demand, {name: least})
                return True
        if job.gpu_type or (not self.mixes(job) and max(self._sizes.values()) >= least):
            return False
        taken, left = dict[str, int](), least
        for name in order:
            taken[name] = max(0, min(left, self.free[name]))
            left -= taken[name]
        if left == 0:
            self._take(demand, taken)
        return left == 0

    def mixes(self, job: Waiting) -> bool:
        """Whether the job may have GPUs of several types."""
        return not job.gpu_type and self._types.mixed_efficiency is not None and len(self._speeds) > 1

    def share_out(self, demands: Sequence[Demand], resize_s: float, choose: Choose) -> None:
        """Give what is free to elastic jobs: first each type to the jobs on it, then to those that may have several."""
        elastic = [each for each in demands if each.most > each.least]
        for also_others in (False, True):
            for name in self._order:
                taking = [each for each in elastic if self._may_grow(each, name, also_others)]
                room = max(0, self.free[name])
                if not (taking and room):
                    continue
                values = {each.job.name: self._saved_s(each, name, room, resize_s) for each in taking}
                chosen = choose(room, values)
                for each in taking:
                    self._take(each, {name: chosen[each.job.name]})

    def _may_grow(self, demand: Demand, gpu_type: str, also_others: bool) -> bool:
        alone = demand.held.keys() <= {gpu_type}
        if not also_others:
            return alone
        return not alone and demand.held.total() < demand.most and self.mixes(demand.job)

    def _saved_s(self, demand: Demand, gpu_type: str, room: int, resize_s: float) -> list[float]:
        """Seconds that 1, 2, .. GPUs more of a type save; a change of its size costs a pause."""
        held = demand.held.total()
        more = np.arange(0, min(room, demand.most - held) + 1)
        saved = demand.work_s * (1.0 / self._speed(demand.held) - 1.0 / self._speeds_with(demand.held, gpu_type, more))
        lost = np.where((demand.now is None) | (held + more == (demand.now or 0)), 0.0, resize_s)
        values: list[float] = (saved - lost + lost[0])[1:].tolist()
        return values

    def _speed(self, held: Mapping[str, int]) -> float:
        return float(self._speeds_with(held, next(iter(held)), np.zeros(1))[0])

    def _speeds_with(
        self, held: Mapping[str, int], gpu_type: str, more: npt.NDArray[np.intp] | npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Speed on the ``held`` GPUs and ``more`` of a type, as :meth:`.gpu_types.GpuTypes.speed` has it."""
        own = {name: count for name, count in held.items() if count}
        gpus = sum(own.values()) + more
        if own.keys() <= {gpu_type}:
            return np.asarray(gpus * self._speeds[gpu_type], dtype=np.float64)
        slowest = min(self._speeds[name] for name in own)
        alone = gpus * np.where(more > 0, min(slowest, self._speeds[gpu_type]), slowest)
        if self._types.mixed_efficiency is None:
            return np.asarray(alone, dtype=np.float64)
        summed = sum(self._speeds[name] * count for name, count in own.items()) + self._speeds[gpu_type] * more
        several = (more > 0) | (len(own) > 1)
        return np.asarray(np.where(several, np.maximum(alone, self._types.mixed_efficiency * summed), alone))

    def _take(self, demand: Demand, gpus: Mapping[str, int]) -> None:
        for name, count in gpus.items():
            if count:
                demand.held[name] += count
                self.free[name] -= count
