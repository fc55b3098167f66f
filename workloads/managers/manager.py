"""A cluster manager: a queue, a policy, a placer and a capacity behind one `decide`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from workloads.managers.actions import Action, Loan, Migrate, Pack, Preempt, Reclaim, Resize, Start
from workloads.managers.cluster_state import ClusterState
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
        """Return what is done about ``event`` at ``state.time_s``, in the order in which it is to be carried out.

        ``waiting`` are the jobs that ask, in order of submission; those that are left out of the answer go on
        waiting. ``ValueError``, one line, if a part asks for what cannot be done.
        """
        return tuple(self._actions(state, waiting, event))

    def check(self, structure: Structure) -> None:
        """Raise ``ValueError``, one line, if a part cannot work on this fabric."""
        for part in self._parts():
            _member(part, "check")(structure)

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """Return in one line why ``job`` could never start, so that it does not wait for ever; None if it could."""
        if job.gpus < 1:
            return f"job '{job.name}' asks for {job.gpus} GPUs, expected at least 1"
        if job.gpus > len(structure.gpus):
            return f"job '{job.name}' asks for {job.gpus} GPUs, the fabric has {len(structure.gpus)}"
        reasons = (_member(part, "refusal")(structure, job) for part in self._parts())
        return next((why for why in reasons if why), None)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> list[float]:
        """Return when the queue and the policy want to be asked though nothing happens; infinite for never."""
        return [_member(part, "wakes_at")(state, waiting) for part in (self.queue, self.policy)]

    @property
    def changes_running(self) -> bool:
        """Whether the policy is to be asked though nobody waits."""
        return bool(_member(self.policy, "changes_running"))

    @property
    def measures_packs(self) -> bool:
        """Whether the policy wants to know how fast packed jobs are."""
        return bool(_member(self.policy, "measures_packs"))

    def _parts(self) -> tuple[Part, ...]:
        return (self.queue, self.policy, self.placer, self.capacity)

    def _actions(self, state: ClusterState, waiting: Sequence[Waiting], event: Event) -> Iterator[Action]:
        if isinstance(event, CapacityChanged):
            for action in _of_capacity(state, event):
                yield action
                state = state.after(action)
        queued = self.queue.eligible(state, waiting)
        state = replace(state, asking=tuple(entry.job for entry in queued))
        standing: set[str] = set()
        for wish in self.policy.decide(state, queued, event):
            for done in self._carried_out(state, wish, standing) if isinstance(wish, PlacementRequest) else (wish,):
                yield done
                state = state.after(done)

    def _carried_out(self, state: ClusterState, want: PlacementRequest, standing: set[str]) -> tuple[Action, ...]:
        """The actions that fulfil ``want``; what follows in a line that is ``standing`` still is passed over."""
        if want.line in standing or (want.kind == "start" and want.job.name in state.running):
            return ()
        lighter = state
        for name in want.evicts:
            lighter = lighter.end(name) if name in lighter.running else lighter
        placement = self._place(lighter, want)
        if placement is not None:
            in_the_way = [name for name in want.evicts if name in state.running and _meet(state, name, placement)]
            left = tuple(Preempt(name, state.time_s, f"{want.job.name} needs its GPUs") for name in in_the_way)
            return (*left, _placed(state, want, placement), *_packed(state, want, placement))
        if want.line is not None:
            standing.add(want.line)
        return () if want.otherwise is None else (want.otherwise,)

    def _place(self, state: ClusterState, want: PlacementRequest) -> Placement | None:
        """Where the placer puts it; it is not asked where there are too few free GPUs at all."""
        if want.gpus < 1:
            raise ValueError(f"job '{want.job.name}': the policy asks for {want.gpus} GPUs, expected at least 1")
        before = state if want.kind == "start" else state.end(want.job.name)
        if want.gpus > before.free_gpus:
            return None
        placement = self.placer.place(before, want.job, want.gpus)
        if placement is not None and len(placement.gpus) != want.gpus:
            got = len(placement.gpus)
            raise ValueError(f"job '{want.job.name}': placer '{self.placer.name}' gave {got} GPUs, not {want.gpus}")
        return placement


def _member(part: Part, name: str) -> Any:
    """A member of a part; the default where a part that is no subclass of its interface lacks it."""
    return getattr(part, name, getattr(_DEFAULTS, name))


def _meet(state: ClusterState, name: str, placement: Placement) -> bool:
    """Whether the running job ``name`` has GPUs of ``placement``."""
    return not set(state.running[name].gpus).isdisjoint(placement.gpus)


def _placed(state: ClusterState, want: PlacementRequest, placement: Placement) -> Action:
    gpus, bound, time_s = placement.gpus, placement.bound, state.time_s
    if want.kind == "start":
        return Start(want.job, gpus, time_s, want.reason, bound, want.pause_s)
    if want.kind == "resize":
        return Resize(want.job.name, gpus, time_s, want.reason, bound, want.pause_s)
    return Migrate(want.job.name, gpus, time_s, want.reason, bound, want.pause_s)


def _packed(state: ClusterState, want: PlacementRequest, placement: Placement) -> tuple[Action, ...]:
    """Those that are to share its GPUs join it."""
    if not want.sharers:
        return ()
    return (Pack((want.job, *want.sharers), placement.gpus, state.time_s, want.reason, want.pause_s),)


def _of_capacity(state: ClusterState, event: CapacityChanged) -> Iterator[Action]:
    """Hosts come and go; the jobs on hosts that go are preempted, and ask again."""
    if event.joining:
        yield Loan(event.joining, state.time_s, event.reason)
    for job in state.jobs_on(event.leaving):
        yield Preempt(job, state.time_s, event.reason)
    if event.leaving:
        yield Reclaim(event.leaving, state.time_s, event.reason)
