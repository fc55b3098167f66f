"""The books of a cluster manager, kept a second time from its actions alone: who had which GPUs, when, with whom.

What always holds is read off these books, not off the state that the manager itself is shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from workloads.managers.account import JobOutcome
from workloads.managers.actions import Action, Migrate, Pack, Preempt, Requeue, Resize, Start
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event
from workloads.managers.jobs import Waiting
from workloads.managers.manager import Manager


@dataclass(frozen=True)
class WatchedManager(Manager):
    """Decides as the manager whose parts it has; ``seen``: all actions, in order."""

    seen: list[Action] = field(default_factory=list)

    def decide(self, state: ClusterState, waiting: Sequence[Waiting], event: Event) -> tuple[Action, ...]:
        """Return the actions, and keep them."""
        actions = super().decide(state, waiting, event)
        self.seen.extend(actions)
        return actions


def watched(manager: Manager) -> WatchedManager:
    """Return ``manager`` so that its actions are kept."""
    return WatchedManager(manager.queue, manager.policy, manager.placer, manager.capacity)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A job computes on ``gpus`` from ``from_s`` to ``to_s``, with ``mates`` on the same GPUs."""

    job: str
    gpus: tuple[str, ...]
    from_s: float
    to_s: float
    mates: tuple[str, ...] = ()


@dataclass
class Books:
    """Who has which GPUs. ``stretches``: all that are over; ``problems``: GPUs that were given twice, in words."""

    holds: dict[str, Stretch] = field(default_factory=dict)
    stretches: list[Stretch] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def act(self, action: Action) -> None:
        """Book an action."""
        match action:
            case Start() | Resize() | Migrate():
                self._put(action.job, action.gpus, action.time_s, action.pause_s)
            case Preempt() | Requeue():
                self.leave(action.job, action.time_s)
            case Pack():
                for name in action.jobs:
                    if name not in self.holds or self.holds[name].gpus != action.gpus:
                        self._put(name, action.gpus, action.time_s, action.pause_s, beside=action.jobs)
                for name in action.jobs:
                    self._change(name, action.time_s, tuple(other for other in action.jobs if other != name))
            case _:
                pass

    def leave(self, job: str, now_s: float) -> None:
        """A job gives its GPUs back, if it has any."""
        if job in self.holds:
            mates = self.holds[job].mates
            self._change(job, now_s, ())
            del self.holds[job]
            for mate in mates:
                self._change(mate, now_s, tuple(other for other in self.holds[mate].mates if other != job))

    def _put(self, job: str, gpus: tuple[str, ...], now_s: float, pause_s: float, beside: tuple[str, ...] = ()) -> None:
        self.leave(job, now_s)
        if len(set(gpus)) < len(gpus):
            self.problems.append(f"{job} has a GPU twice at {now_s:g} s")
        for other, held in self.holds.items():
            if other not in beside and not set(held.gpus).isdisjoint(gpus):
                self.problems.append(f"{job} gets GPUs of {other} at {now_s:g} s")
        self.holds[job] = Stretch(job, gpus, now_s + pause_s, inf)

    def _change(self, job: str, now_s: float, mates: tuple[str, ...]) -> None:
        """End the stretch under way, if the job computes, and begin another one beside ``mates``."""
        held = self.holds[job]
        if held.from_s < now_s:
            self.stretches.append(replace(held, to_s=now_s))
        self.holds[job] = replace(held, from_s=max(held.from_s, now_s), mates=mates)


def books_of(actions: Sequence[Action], outcomes: Iterable[JobOutcome]) -> Books:
    """Return the books after all ``actions``, given when jobs ended: before an action of that moment."""
    ends = sorted((each.end_s, each.name) for each in outcomes if each.end_s is not None)
    times = [action.time_s for action in actions]
    return books_in_order(actions, [(bisect_left(times, end_s), end_s, name) for end_s, name in ends])


def books_in_order(actions: Sequence[Action], ends: Sequence[tuple[int, float, str]]) -> Books:
    """Return the books after all ``actions``; ``ends``, in order: after how many of them, when, and of which job.

    A job ends for good or has failed. What is simultaneous has an order, too: a job that is done to a rounding error
    may be packed with another a moment before it ends.
    """
    books, left = Books(), list(ends)
    for number, action in enumerate(actions):
        while left and left[0][0] <= number:
            _, end_s, name = left.pop(0)
            books.leave(name, end_s)
        books.act(action)
    for _, end_s, name in left:
        books.leave(name, end_s)
    return books


def waiting_forever(outcomes: Iterable[JobOutcome], submitted: Iterable[str], refused: Mapping[str, str]) -> list[str]:
    """Return the jobs that have not ended and were not refused."""
    ended = {each.name for each in outcomes if each.end_s is not None}
    return [name for name in submitted if name not in ended and name not in refused]
