"""Lyra (Li et al., EuroSys 2023): elastic jobs share what is left, and servers on loan come and go.

Servers on loan go back by scaling elastic jobs in where that is enough, else by preemption (``lyra_reclaim``).
Two phases at each event. First every job, the shortest first, gets its minimum number of GPUs, all or nothing. The
rest goes to elastic jobs by a multiple-choice knapsack; the value of extra GPUs is the time by which they shorten a
job, whose speed is proportional to its GPUs and their speed. GPUs of each type are counted by themselves
(``lyra_pools``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from workloads.managers.actions import Loan, Preempt, Reclaim, Resize
from workloads.managers.cluster_state import Changes, ClusterState
from workloads.managers.gpu_index import Structure
from workloads.managers.interfaces import CapacityChanged, Event, PlacementRequest, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Running, Waiting
from workloads.managers.options import flag, hosts_named, number, require_hosts
from workloads.managers.policies.lyra_pools import Demand, Pools
from workloads.managers.policies.lyra_reclaim import Footprint, returns
from workloads.managers.policies.preemption import Candidate, asked_by
from workloads.managers.policies.srtf import remaining_s

RESTART_S = 63.0
"""What a preempted job loses (from memory of the paper: about 63 s)."""


def choose(capacity: int, groups: Mapping[str, Sequence[float]]) -> dict[str, int]:
    """Solve the multiple-choice knapsack (section 5): return group -> units, so that the values add up to most.

    ``groups``: group -> value of 1, 2, .. units. A group of which nothing is taken gets 0. Of equal sums that one is
    taken in which later groups get less. Time grows with capacity times the number of items.
    """
    room = max(0, capacity)
    if sum(map(len, groups.values())) <= room:  # each takes what is best for itself
        best_alone = {
            name: max(range(len(values)), key=values.__getitem__) for name, values in groups.items() if values
        }
        return {
            name: best_alone[name] + 1 if values and values[best_alone[name]] > 0 else 0
            for name, values in groups.items()
        }
    best = np.zeros(room + 1)
    taken: list[npt.NDArray[np.intp]] = []
    for values in groups.values():
        after, chosen = best.copy(), np.zeros(room + 1, np.intp)
        for units, value in enumerate(values[:room], start=1):
            tried = best[:-units] + value  # with room for 0, 1, .. beside these units
            better = tried > after[units:]
            after[units:][better] = tried[better]
            chosen[units:][better] = units
        best = after
        taken.append(chosen)
    found: dict[str, int] = {}
    for name, chosen in zip(reversed(list(groups)), reversed(taken), strict=True):
        found[name] = int(chosen[room])
        room -= found[name]
    return {name: found[name] for name in groups}


def footprint(state: ClusterState, running: Running, least: int) -> Footprint:
    """Return a running job's GPUs by host, of which it needs ``least``."""
    host_of = state.fabric.host_of_gpu
    return Footprint(Counter(host_of[gpu] for gpu in running.gpus), least)


def base_gpus(running: Running, least: int) -> tuple[str, ...]:
    """Return the GPUs of a running job's base workers: those that its placer recorded, else its first ones."""
    mine = set(running.gpus)
    recorded = [gpu for gpu in running.bound if gpu in mine]
    return tuple(dict.fromkeys((*recorded, *running.gpus)))[:least]


class Lyra(Policy):
    """Allocates GPUs, and borrows hosts. ``loan_hosts``: hosts of inference that may be lent, in order; None: all that
    are absent or on loan.

    ``restart_s``: what a job that was preempted loses when it starts again. ``resize_s``: for how long a job pauses
    when it is scaled in or out; the knapsack counts that as a loss. ``elastic`` False: no job is scaled.
    ``on_loan_first``: whether elastic jobs are counted on GPU types that are on loan first, as ``elastic-groups``
    places them.
    """

    name: ClassVar[str] = "lyra"
    summary: ClassVar[str] = "shortest first at the least size, elastic jobs share the rest by a knapsack; loans"
    changes_running: ClassVar[bool] = True
    heeds_evicts: ClassVar[bool] = False

    def __init__(
        self,
        *,
        loan_hosts: Sequence[str] | None = None,
        restart_s: float = RESTART_S,
        resize_s: float = 0.0,
        elastic: bool = True,
        on_loan_first: bool = True,
    ) -> None:
        self._on_loan_first = flag(self.name, "on_loan_first", on_loan_first)
        named = None if loan_hosts is None else hosts_named(self.name, "loan_hosts", loan_hosts)
        self._loan_hosts, self._elastic = named, flag(self.name, "elastic", elastic)
        self.uses = {**({"elastic": "scaling in and out"} if elastic else {}), "loans": "borrowing them"}
        self._restart_s = number(self.name, "restart_s", restart_s, least=0)
        self._resize_s = number(self.name, "resize_s", resize_s, least=0)

    def check(self, structure: Structure) -> None:
        """Every host on loan must be one of the fabric."""
        require_hosts(self.name, "loan_hosts", self._loan_hosts or (), structure)

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Borrow or return hosts; then allocate."""
        waiting = [entry.job for entry in queued]
        if isinstance(event, CapacityChanged) and event.lendable is not None:
            changes = Changes(state)
            for action in self._lent(state, event.lendable):
                yield action
                if isinstance(action, Preempt):  # as it was before, which counts what it has done
                    waiting.append(changes.state.running[action.job].until(state.time_s))
                changes.apply(action)
            state = changes.state
        yield from self._allocated(state, waiting)

    def _lent(self, state: ClusterState, lendable: int) -> Iterator[Loan | Resize | Preempt | Reclaim]:
        named = self._loan_hosts
        if named is None:
            named = tuple(host for host in state.structure.hosts if host in state.absent or host in state.loaned)
        present = [host for host in named if host not in state.absent]
        away = [host for host in named if host in state.absent]
        if lendable > len(present):
            yield Loan(tuple(away[: lendable - len(present)]), state.time_s, "servers are lent")
        jobs = {name: footprint(state, each, self._least(each.job)) for name, each in state.running.items()}
        gpus = {name: each.gpus for name, each in state.running.items()}
        for going in returns(jobs, present, len(present) - lendable):
            for name in going.scaled_in:
                gpus[name] = tuple(gpu for gpu in gpus[name] if state.fabric.host_of_gpu[gpu] != going.host)
                bound = state.running[name].bound
                yield Resize(name, gpus[name], state.time_s, "scaled in, its server goes", bound, self._resize_s)
            for name in going.preempted:
                yield Preempt(name, state.time_s, "its server is reclaimed")
            yield Reclaim((going.host,), state.time_s, "the server goes back")

    def _allocated(self, state: ClusterState, waiting: Sequence[Waiting]) -> Iterator[PolicyAction]:
        now_s, pools = state.time_s, Pools(state, self._on_loan_first)
        running = list(state.running.values())
        demands = [self._demand(each, state) for each in running]
        for each, demand in zip(running, demands, strict=True):
            pools.hold(each, base_gpus(each, demand.least), demand)
        started: list[Waiting] = []
        for job in sorted(waiting, key=lambda job: (self._longest_s(job, now_s), job.number)):
            demand = self._demand(job, state)
            if pools.fits(demand):
                demands.append(demand)
                started.append(job)
        pools.share_out(demands, self._resize_s, choose)
        extra = {each.job.name: each.held.total() - each.least for each in demands}
        yield from self._carried_out(running, started, extra)

    def _longest_s(self, job: Waiting, now_s: float) -> float:
        """Seconds left on its minimum number of GPUs."""
        return remaining_s(job, now_s) * job.gpus / self._least(job)

    def _demand(self, each: Candidate, state: ClusterState) -> Demand:
        job = asked_by(each)
        least = self._least(job)
        most = max(least, int(min(self._most(job), state.most_gpus(job.name))))
        return Demand(job, least, most, remaining_s(each, state.time_s) * job.gpus)

    def _carried_out(
        self, running: Sequence[Running], started: Sequence[Waiting], extra: Mapping[str, int]
    ) -> Iterator[PolicyAction]:
        """First jobs shrink, then waiting ones start, then jobs grow."""
        wanted = {each.name: self._least(each.job) + extra.get(each.name, 0) for each in running}
        for each in running:
            if wanted[each.name] < len(each.gpus):
                yield PlacementRequest(
                    each.job, wanted[each.name], "resize", reason="scaled in", pause_s=self._resize_s
                )
        for job in started:
            pause_s = 0.0 if job.started_s is None else self._restart_s
            for gpus in dict.fromkeys((self._least(job) + extra.get(job.name, 0), self._least(job))):
                # The second has no effect once the first is placed: no place for all of them is no reason to wait.
                yield PlacementRequest(job, gpus, reason="its turn", pause_s=pause_s)
        for each in running:
            if wanted[each.name] > len(each.gpus):
                yield PlacementRequest(
                    each.job, wanted[each.name], "resize", reason="scaled out", pause_s=self._resize_s
                )

    def _least(self, job: Waiting) -> int:
        return job.gpus if job.min_gpus is None or not self._elastic else job.min_gpus

    def _most(self, job: Waiting) -> int:
        return job.gpus if job.max_gpus is None or not self._elastic else job.max_gpus
