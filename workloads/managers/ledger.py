"""The ledger of a cluster manager over time: which jobs wait and run, what has happened, what the manager decides.

Time is passed in; the engine reports when jobs end and how much of them is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Final

from topologies.fabric import Fabric
from workloads.managers.actions import Action, Ask, Migrate, Pack, Preempt, Promote, Requeue, Resize, Start
from workloads.managers.capacities.gpu_types import GpuTypes
from workloads.managers.cluster_state import Changes, ClusterState, empty_cluster
from workloads.managers.interfaces import CapacityChanged, Ended, Event, Submitted, Tick
from workloads.managers.jobs import Waiting
from workloads.managers.manager import Manager
from workloads.managers.measured_jobs import MeasuredJobs

CAUSES: Final = ("share", "capacity", "fragmentation")
"""Why a job waits: the queue does not let it start (a quota, a line), too few GPUs are free, or enough are free but
not where its placer wants them (or its policy keeps them for others). A job that backs off, or holds some of its GPUs
and waits for the rest, has the same causes."""

Remaining = Callable[[str], float | None]
"""A running job -> seconds left on the GPUs it asked for; None where unknown."""


class Ledger:
    """Passes all events to ``manager``. ``refused``: jobs that can never start, each with the reason.

    ``gpu_types`` None: those that its capacity knows.
    ``ValueError`` at construction if the manager does not fit the fabric, and later if a part asks for the impossible.
    """

    def __init__(self, manager: Manager, fabric: Fabric, gpu_types: GpuTypes | None = None) -> None:
        self._manager = manager
        types = manager.gpu_types(fabric) if gpu_types is None else gpu_types
        self.state: ClusterState = empty_cluster(fabric, gpu_types=types)
        manager.check(self.state.structure)
        self._waiting: dict[str, Waiting] = {}
        self._in_order = True
        self._sent_back: dict[str, float] = {}
        self._holding: set[str] = set()
        self._events: list[Event] = []
        self._changes = manager.capacity.changes(fabric)
        self._next_change = next(self._changes, None)
        self._always, self._measures = manager.changes_running, manager.measures_packs
        self._needs_remaining = manager.needs_remaining
        self._measures_all = manager.measures_progress
        self._measured_jobs = MeasuredJobs() if manager.measures_jobs else None
        self._left_when_placed: dict[str, tuple[float, float, bool]] = {}
        self._wake_s = inf
        self._count = 0
        self._preemptions = 0
        self.refused: dict[str, str] = {}
        self._why: dict[str, str] = {}
        self._why_since_s = 0.0
        self._waits: dict[str, dict[str, float]] = {}

    def waits(self, name: str) -> Mapping[str, float]:
        """Seconds that a job has waited, by cause, up to the last decision (Philly: fair share and fragmentation)."""
        return self._waits.get(name, {})

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The waiting jobs, those that back off included, in order of submission."""
        return tuple(self._waiting.values())

    def submit(self, job: Waiting) -> bool:
        """Add ``job`` to the waiting jobs; False if it can never start."""
        why = self._manager.refusal(self.state.structure, job)
        if why is not None:
            self.refused[job.name] = why
            return False
        self._waiting[job.name] = replace(job, number=self._count)
        self._count += 1
        self._events.append(Submitted(job.name))
        return True

    def end(self, name: str, now_s: float) -> None:
        """A running job has ended."""
        self.state = self.state.at(now_s).end(name)
        self._events.append(Ended(name))

    def hosts_changed(self, change: CapacityChanged) -> None:
        """Hosts have failed, or are back; jobs on those that leave are preempted at the next decision."""
        self._events.append(change)

    def next_s(self) -> float:
        """The next time to call the manager even if no job is submitted or ends."""
        change = inf if self._next_change is None else self._next_change.time_s
        return min(change, self._wake_s, min(self._sent_back.values(), default=inf))

    def decide(self, now_s: float, remaining: Remaining = lambda _name: None) -> list[Action]:
        """Decide on everything that has happened until ``now_s``; return the actions to carry out, in order."""
        self._count_waits(now_s)
        self._measure(now_s, remaining)
        if self._measured_jobs is not None:
            measured = self._measured_jobs.measured(self.state.running, now_s, remaining)
            self.state = self.state.with_jobs(measured)
        self._collect(now_s)
        done: list[Action] = []
        decided = False
        for event in self._events:
            if not self._waiting and not self._always and isinstance(event, Submitted | Ended | Tick):
                continue
            state, decided = self._as_it_is(now_s, remaining), True
            changes = Changes(state)
            for action in self._manager.decide(state, self._asking(), event):
                self._book(action, changes.state, remaining)
                changes.apply(action)
                done.append(action)
            self.state = changes.state
            self._put_in_order()
        if decided:
            self.state = replace(self.state, decided_s=now_s)
        self._events.clear()
        self._wake_s = self._next_wake(now_s)
        self._why = self._causes(now_s)
        return done

    def _as_it_is(self, now_s: float, remaining: Remaining) -> ClusterState:
        """The state now, with what is left of each job that runs, where the policy needs it."""
        state = self.state.at(now_s)
        if not self._needs_remaining:
            return state
        found = ((name, remaining(name)) for name, each in state.running.items() if each.since_s < now_s)
        return state.with_known_left({name: left_s for name, left_s in found if left_s is not None})

    def _measure(self, now_s: float, remaining: Remaining) -> None:
        """Measure the speed of jobs since they were placed or packed: seconds of work done, per second."""
        speeds: dict[str, float | None] = {}
        for name, (since_s, left_s, packed) in tuple(self._left_when_placed.items()):
            running = self.state.running.get(name)
            shares = running is not None and bool(running.share_gpus_with)
            left = remaining(name) if running is not None and (shares or self._measures_all) else None
            if left is None:
                del self._left_when_placed[name]
            elif packed and not shares:  # from now on it runs alone
                self._left_when_placed[name] = (now_s, left, False)
                speeds[name] = None
            elif now_s > since_s:
                speeds[name] = (left_s - left) / (now_s - since_s)
        self.state = self.state.measured(speeds)

    def _count_waits(self, now_s: float) -> None:
        """Add the time that has passed to the causes that held."""
        for name, cause in self._why.items():
            waits = self._waits.setdefault(name, {})
            waits[cause] = waits.get(cause, 0.0) + now_s - self._why_since_s
        self._why_since_s = now_s

    def _causes(self, now_s: float) -> dict[str, str]:
        """Why each waiting job waits."""
        causes = {name: self._cause(self.state.running[name].job, True) for name in self._holding}
        if self._waiting:
            state, asking = self.state.at(now_s), self._asking()
            eligible = {entry.job.name for entry in self._manager.queue.eligible(state, asking)}
            causes.update({name: self._cause(job, name in eligible) for name, job in self._waiting.items()})
        return causes

    def _cause(self, job: Waiting, eligible: bool) -> str:
        if not eligible and job.name not in self._sent_back:
            return "share"
        held = len(self.state.running[job.name].gpus) if job.name in self._holding else 0
        return "capacity" if (job.min_gpus or job.gpus) - held > self.state.free_gpus else "fragmentation"

    def _collect(self, now_s: float) -> None:
        """Create the events that are due; hosts that go now are gone before jobs are placed."""
        changes: list[Event] = []
        while self._next_change is not None and self._next_change.time_s <= now_s:
            changes.append(self._next_change)
            self._next_change = next(self._changes, None)
        self._events[:0] = changes
        due = [name for name, again_s in self._sent_back.items() if again_s <= now_s]
        for name in due:
            del self._sent_back[name]
        if due or self._wake_s <= now_s:
            self._events.append(Tick())

    def _asking(self) -> tuple[Waiting, ...]:
        return tuple(job for job in self._waiting.values() if job.name not in self._sent_back)

    def _book(self, action: Action, state: ClusterState, remaining: Remaining) -> None:
        now_s = state.time_s
        self._book_holding(action)
        match action:
            case Start():
                del self._waiting[action.job]
                self._begin_measuring(action, action.asked.left_s)
            case Resize() | Migrate():
                left = self._left_of(action.job, None, state, remaining) if self._measures_all else None
                self._begin_measuring(action, left)
            case Pack():
                for name in action.jobs:
                    waited = self._waiting.pop(name, None)
                    left = self._left_of(name, waited, state, remaining) if self._measures else None
                    if left is not None:
                        moves = waited is not None or state.running[name].gpus != action.gpus
                        since_s = now_s + action.pause_s if moves else now_s  # its pause tells nothing of sharing
                        self._left_when_placed[name] = (since_s, left, True)
            case Preempt():
                running = state.running[action.job]
                # The engine does not know yet of a job that was started a moment ago, by the same call.
                left = None if running.holding or running.since_s == now_s else remaining(action.job)
                job = running.until(now_s)
                self._preemptions += 1
                apart_from = (*job.apart_from, *action.apart_from)
                job = replace(job, apart_from=apart_from, preemption=self._preemptions)
                self._wait_again(job if left is None else replace(job, remaining_s=left))
            case Ask():
                self._waiting[action.job] = replace(self._waiting[action.job], asking_since_s=now_s)
            case Requeue():
                job = state.running[action.job].job if action.job in state.running else self._waiting[action.job]
                self._wait_again(replace(job, tries=job.tries + 1, asking_since_s=None))
                self._sent_back[action.job] = action.again_s
            case Promote():
                self._waiting[action.job] = self._waiting[action.job].promoted(now_s)
            case _:
                pass  # the state already has the change

    def _book_holding(self, action: Action) -> None:
        if isinstance(action, Start | Resize | Migrate) and action.pause_s == inf:
            self._holding.add(action.job)
        elif isinstance(action, Start | Resize | Migrate | Preempt | Requeue):
            self._holding.discard(action.job)

    def _wait_again(self, job: Waiting) -> None:
        self._in_order = self._in_order and job.name in self._waiting
        self._waiting[job.name] = job

    def _put_in_order(self) -> None:
        """Once for all jobs of a decision that wait again."""
        if not self._in_order:
            self._waiting = dict(sorted(self._waiting.items(), key=lambda item: item[1].number))
            self._in_order = True

    def _begin_measuring(self, action: Start | Resize | Migrate, left_s: float | None) -> None:
        """The speed of a job counts from when it computes on these GPUs."""
        self._left_when_placed.pop(action.job, None)
        if self._measures_all and left_s is not None and action.pause_s < inf:
            self._left_when_placed[action.job] = (action.time_s + action.pause_s, left_s, False)

    @staticmethod
    def _left_of(name: str, waited: Waiting | None, state: ClusterState, remaining: Remaining) -> float | None:
        """Seconds left of a job that waits, has just started (the engine may not know of it yet), or runs."""
        if waited is not None:
            return waited.left_s
        running = state.running[name]
        return running.job.left_s if running.since_s == state.time_s else remaining(name)

    def _next_wake(self, now_s: float) -> float:
        wakes = self._manager.wakes_at(self.state, self._asking())
        return min((at_s for at_s in wakes if at_s > now_s), default=inf)
