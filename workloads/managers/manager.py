"""A cluster manager: a queue, a policy, a placer and a capacity behind one `decide`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, Final

from topologies.fabric import Fabric
from workloads.managers.actions import Action, Loan, Migrate, Pack, Preempt, Reclaim, Resize, Start
from workloads.managers.capacities.gpu_types import ONE_TYPE, GpuTypes
from workloads.managers.cluster_state import Changes, ClusterState
from workloads.managers.eviction import as_local, fewest_evicted
from workloads.managers.gpu_index import Structure
from workloads.managers.interfaces import (
    Capacity,
    CapacityChanged,
    Event,
    Part,
    PlacementRequest,
    Placer,
    Policy,
    Queue,
    QueuedJob,
)
from workloads.managers.jobs import Placement, Waiting


class _Defaults(Policy):
    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> tuple[()]:
        return ()


_DEFAULTS: Final = _Defaults()


@dataclass(frozen=True, slots=True)
class Manager:
    """The composition of the four plug-in points."""

    queue: Queue
    policy: Policy
    placer: Placer
    capacity: Capacity

    def decide(self, state: ClusterState, waiting: Sequence[Waiting], event: Event) -> tuple[Action, ...]:
        """Return the actions that answer ``event`` at ``state.time_s``, in the order to carry them out.

        ``waiting`` are the waiting jobs, in order of submission; those that the actions leave out keep waiting.
        ``ValueError``, one line, if a part asks for the impossible.
        """
        return tuple(self._actions(state, waiting, event))

    def check(self, structure: Structure) -> None:
        """Raise ``ValueError``, one line, if a part cannot work on this fabric."""
        for part in self.parts():
            _member(part, "check")(structure)
        if getattr(self.queue, "preempts", False) and not _member(self.policy, "heeds_evicts"):
            found = f"queue '{self.queue.name}' cannot preempt under policy '{self.policy.name}'"
            raise ValueError(f"{found}, which decides alone who leaves; expected no preemption or another policy")

    def gpu_types(self, fabric: Fabric) -> GpuTypes:
        """Return the types of the fabric's GPUs, as the capacity has them."""
        known = getattr(self.capacity, "gpu_types", None)  # a capacity of another package may lack it
        types: GpuTypes = ONE_TYPE if known is None else known(fabric)
        return types

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """Return in one line why ``job`` can never start, so that it does not wait forever; None if it can."""
        if job.gpus < 1:
            return f"job '{job.name}' asks for {job.gpus} GPUs, expected at least 1"
        if job.gpus > len(structure.gpus):
            return f"job '{job.name}' asks for {job.gpus} GPUs, the fabric has {len(structure.gpus)}"
        if job.gpu_type and not getattr(self.placer, "knows_gpu_types", False):
            return (
                f"job '{job.name}' asks for GPUs of type '{job.gpu_type}', placer '{self.placer.name}' knows no types"
            )
        reasons = (_member(part, "refusal")(structure, job) for part in self.parts())
        return next((why for why in reasons if why), None)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> list[float]:
        """Return when the queue and the policy ask to be called even if nothing happens; infinite for never."""
        state = replace(state, limits=self._limits(state, ()))
        return [_member(part, "wakes_at")(state, waiting) for part in (self.queue, self.policy)]

    @property
    def changes_running(self) -> bool:
        """Whether to call the policy even if no job waits."""
        return bool(_member(self.policy, "changes_running"))

    @property
    def measures_packs(self) -> bool:
        """Whether the policy needs the speed of packed jobs."""
        return bool(_member(self.policy, "measures_packs"))

    @property
    def measures_progress(self) -> bool:
        """Whether the policy needs the speed of every running job."""
        return bool(_member(self.policy, "measures_progress"))

    @property
    def measures_jobs(self) -> bool:
        """Whether the policy needs the speeds and losses of running jobs."""
        return bool(_member(self.policy, "measures_jobs"))

    @property
    def needs_remaining(self) -> bool:
        """Whether the policy needs to know how much of running jobs is left."""
        return bool(_member(self.policy, "needs_remaining"))

    def parts(self) -> tuple[Part, ...]:
        """Its four parts: queue, policy, placer and capacity."""
        return (self.queue, self.policy, self.placer, self.capacity)

    def _actions(self, state: ClusterState, waiting: Sequence[Waiting], event: Event) -> Iterator[Action]:
        if isinstance(event, CapacityChanged):
            changes, left = Changes(state), list[Waiting]()
            for action in _of_capacity(state, event):
                yield action
                if isinstance(action, Preempt):  # it may start elsewhere at once
                    left.append(changes.state.running[action.job].until(state.time_s))
                changes.apply(action)
            state, waiting = changes.state, (*waiting, *left)
            waiting = sorted(waiting, key=lambda job: job.number)
        queued = self.queue.eligible(state, waiting)
        state = replace(state, asking=tuple(entry.job for entry in queued), limits=self._limits(state, queued))
        makes_way = {entry.job.name: entry.evicts for entry in queued if entry.evicts}
        blocked: set[str] = set()
        actions: tuple[Action, ...] = ()
        changes = Changes(state)
        for asked in self.policy.decide(state, queued, event):
            for action in actions:  # of the request before: after the last one nobody asks for the state
                changes.apply(action)
            actions, now = (), changes.state
            if isinstance(asked, Resize):
                actions = _trimmed(now, asked)
            elif not isinstance(asked, PlacementRequest):
                actions = (asked,)
            elif asked.line in blocked or (asked.kind == "start" and asked.job.name in now.running):
                continue
            else:
                actions = self._fulfil(now, asked, makes_way.get(asked.job.name, ()), blocked)
            yield from actions

    def _limits(self, state: ClusterState, queued: Sequence[QueuedJob]) -> Mapping[str, Mapping[str, float]]:
        """Job -> the limits of its queues; none where no job ever grows."""
        limits_of = getattr(self.queue, "limits", None)  # a queue of another package may lack it
        if limits_of is None or not self.changes_running:
            return {}
        jobs = (*(each.job for each in state.running.values()), *(entry.job for entry in queued))
        return {job.name: limits for job in jobs if (limits := limits_of(state, job))}

    def _fulfil(
        self, state: ClusterState, request: PlacementRequest, makes_way: tuple[str, ...], blocked: set[str]
    ) -> tuple[Action, ...]:
        """The actions that fulfil ``request``; the jobs of ``makes_way`` are preempted only if nothing else helps."""
        asked, request = request, _lowered(state, request)
        if request.gpus < asked.gpus and request.kind == "resize" and not _grows(state, request):
            return ()
        placement, place = self._place(state, request), partial(self._place, request=request)
        if request.evicts:
            placement = as_local(place, state, request.evicts, placement)
        leaving: frozenset[str] = frozenset()
        if placement is None and makes_way:
            found = fewest_evicted(place, state, (*request.evicts, *makes_way))
            if found is not None:
                placement, leaving = found[0], frozenset(found[1]).intersection(makes_way)
        if placement is not None:
            evicted = [
                name
                for name in dict.fromkeys((*request.evicts, *makes_way))
                if name in leaving
                or (name in request.evicts and name in state.running and _overlap(state, name, placement))
            ]
            left = tuple(Preempt(name, state.time_s, f"{request.job.name} needs its GPUs") for name in evicted)
            return (*left, _placed(state, request, placement), *_packed(state, request, placement))
        part = self._part(state, request) if request.holds else None
        if part is not None:
            return (_placed(state, replace(request, pause_s=inf), part),)
        if request.line is not None:
            blocked.add(request.line)
        return () if request.otherwise is None else (request.otherwise,)

    def _part(self, state: ClusterState, request: PlacementRequest) -> Placement | None:
        """GPUs for the job to hold while it waits for the rest; None if it already holds as many, or there are none."""
        part_of = getattr(self.placer, "part", None)
        if part_of is None:
            return None
        held = 0 if request.kind == "start" else len(state.running[request.job.name].gpus)
        before = state if request.kind == "start" else state.end(request.job.name)
        part: Placement | None = part_of(before, request.job, request.gpus)
        return part if part is not None and held < len(part.gpus) < request.gpus else None

    def _place(self, state: ClusterState, request: PlacementRequest) -> Placement | None:
        """Where the placer puts the job; it is not called where too few GPUs are free."""
        job, gpus = request.job, request.gpus
        if gpus < 1:
            raise ValueError(f"job '{job.name}': the policy asks for {gpus} GPUs, expected at least 1")
        before = state if request.kind == "start" else state.end(job.name)
        if gpus > before.free_gpus or (request.kind == "start" and gpus > state.most_gpus(job.name)):
            return None
        resized = getattr(self.placer, "resized", None) if request.kind == "resize" else None
        if resized is not None:
            placement: Placement | None = resized(state, state.running[job.name], gpus)
        else:
            placement = self.placer.place(before, job, gpus)
        if placement is not None and len(placement.gpus) != gpus:
            got = len(placement.gpus)
            raise ValueError(f"job '{job.name}': placer '{self.placer.name}' gave {got} GPUs, not {gpus}")
        return placement


def _member(part: Part, name: str) -> Any:
    """A member of a part; the default where a part that is no subclass of its interface lacks it."""
    return getattr(part, name, getattr(_DEFAULTS, name))


def _lowered(state: ClusterState, request: PlacementRequest) -> PlacementRequest:
    """The request for as many GPUs as its job's queues allow; not fewer than it has, or can start with."""
    job, most = request.job, state.most_gpus(request.job.name)
    if request.gpus <= most:
        return request
    least = (job.min_gpus or job.gpus) if request.kind == "start" else len(state.running[job.name].gpus)
    return replace(request, gpus=min(request.gpus, max(int(most), least)))


def _grows(state: ClusterState, request: PlacementRequest) -> bool:
    return request.gpus > len(state.running[request.job.name].gpus)


def _trimmed(state: ClusterState, resize: Resize) -> tuple[Resize, ...]:
    """The resize to as many GPUs as its job's queues allow, the first ones; none if it does not grow then."""
    now, most = len(state.running[resize.job].gpus), state.most_gpus(resize.job)
    if len(resize.gpus) <= max(now, most):
        return (resize,)
    gpus = resize.gpus[: max(now, int(most))]
    return () if len(gpus) == now else (replace(resize, gpus=gpus),)


def _overlap(state: ClusterState, name: str, placement: Placement) -> bool:
    """Whether the running job ``name`` has GPUs of ``placement``."""
    return not set(state.running[name].gpus).isdisjoint(placement.gpus)


def _placed(state: ClusterState, request: PlacementRequest, placement: Placement) -> Action:
    gpus, bound, time_s = placement.gpus, placement.bound, state.time_s
    if request.kind == "start":
        return Start(request.job, gpus, time_s, request.reason, bound, request.pause_s)
    if request.kind == "resize":
        return Resize(request.job.name, gpus, time_s, request.reason, bound, request.pause_s)
    return Migrate(request.job.name, gpus, time_s, request.reason, bound, request.pause_s)


def _packed(state: ClusterState, request: PlacementRequest, placement: Placement) -> tuple[Action, ...]:
    """The jobs that share its GPUs join it."""
    if not request.sharers:
        return ()
    members = (request.job, *request.sharers)
    return (Pack(members, placement.gpus, state.time_s, request.reason, request.pause_s),)


def _of_capacity(state: ClusterState, event: CapacityChanged) -> Iterator[Action]:
    """Hosts join and leave; the jobs on hosts that leave are preempted, and wait."""
    if event.joining:
        yield Loan(event.joining, state.time_s, event.reason)
    for job in state.jobs_on(event.leaving):
        yield Preempt(job, state.time_s, event.reason)
    if event.leaving:
        yield Reclaim(event.leaving, state.time_s, event.reason)
