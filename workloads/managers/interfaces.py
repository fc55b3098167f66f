"""The four plug-in points of a cluster manager: queue, policy, placer, capacity.

The policy says who and how many, the placer where; so every policy runs with every placer. All four are
pure: what they need is in the arguments, time is passed in, and the same arguments give the same answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

from topologies.fabric import Fabric
from workloads.managers.actions import Action, Requeue
from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Structure
from workloads.managers.jobs import Placement, Waiting


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job has joined those that wait."""

    job: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A running job is done, and has left the state."""

    job: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A time that a policy asked for has come: a round, a threshold, the end of a back-off."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class CapacityChanged:
    """Hosts come (``joining``) and go (``leaving``) at ``time_s``; ``lendable`` servers may be on loan from then on."""

    time_s: float
    joining: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    lendable: int | None = None
    reason: str = ""


Event = Submitted | Ended | Tick | CapacityChanged


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that may start. While it cannot, nobody behind it in the same ``line`` may; None holds up nobody."""

    job: Waiting
    line: str | None = None


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A policy's wish for ``gpus`` GPUs for ``job``, wherever the placer finds them.

    ``evicts`` are running jobs that leave if they are in the way: the job is placed as if they were not there.
    ``sharers``, waiting or running, get the same GPUs.

    ``kind`` resize and migrate are for a running job, which is placed as if its GPUs were free. If there is
    no place, ``otherwise`` is done (a back-off), or nothing, and the job's ``line`` stands still.
    """

    job: Waiting
    gpus: int
    kind: Literal["start", "resize", "migrate"] = "start"
    line: str | None = None
    reason: str = ""
    pause_s: float = 0.0
    otherwise: Requeue | None = None
    evicts: tuple[str, ...] = ()
    sharers: tuple[Waiting, ...] = ()


PolicyAction = PlacementRequest | Action
"""What a policy hands out: a wish to be placed, or an action that is complete as it is."""


class Part(ABC):
    """What all four have in common. A part that is no subclass works too: what it lacks is as here.

    ``name``: in scenario files and results. ``summary``: what the part does, in one line.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""

    def check(self, structure: Structure) -> None:  # noqa: B027 - a default, not an oversight
        """Raise ``ValueError``, one line, if the part cannot work on this fabric; by default it can."""

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """Return why ``job`` can never start, even on an empty cluster; None, the default, if it can."""
        return None


class Waking(Part):
    """A part that is asked at times of its own choice, too."""

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """Return when to ask again though nothing happens: a threshold, the end of a slice, a round.

        That time comes as a :class:`Tick`; infinite, the default, for never.
        """
        return inf


class Queue(Waking):
    """Who may start, and in which order: quotas, fair shares, first come first served."""

    @abstractmethod
    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> Sequence[QueuedJob]:
        """Return the jobs of ``waiting`` (in order of submission) that may start now, the first to be served first."""


class Policy(Waking):
    """Who gets how many GPUs.

    ``changes_running``: it also stops, resizes or moves running jobs; others are asked only while jobs wait.
    ``measures_packs``: it wants to know how fast packed jobs are (:attr:`Running.speed`).
    """

    changes_running: ClassVar[bool] = False
    measures_packs: ClassVar[bool] = False

    @abstractmethod
    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterable[PolicyAction]:
        """Return what is to be done, in order: each request is placed in the state that those before it leave."""


class Placer(Part):
    """Which GPUs."""

    @abstractmethod
    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """Return ``gpus`` free GPUs for ``job``, or None if it has to wait: all or nothing."""


class Capacity(Part):
    """Which hosts are there: loans, reclaims, failures."""

    @abstractmethod
    def changes(self, fabric: Fabric) -> Iterator[CapacityChanged]:
        """Yield the hosts that come and go, by time; it may never end."""
