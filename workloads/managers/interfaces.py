"""The four plug-in points of a cluster manager: queue, policy, placer, capacity.

The policy decides which jobs get how many GPUs, the placer which ones; so every policy runs with every placer. All
four are pure: what they need is in the arguments, time is passed in, and the same arguments give the same answer.
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
    """A job has joined the waiting jobs."""

    job: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A running job has ended, and left the state."""

    job: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A time that a part asked for: a round, a threshold, the end of a back-off."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class CapacityChanged:
    """Hosts join and leave the cluster at ``time_s``; from then on ``lendable`` servers may be on loan."""

    time_s: float
    joining: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    lendable: int | None = None
    reason: str = ""


Event = Submitted | Ended | Tick | CapacityChanged


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that may start. While it cannot, no job behind it in the same ``line`` may; None: it blocks none."""

    job: Waiting
    line: str | None = None


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A policy requests ``gpus`` GPUs for ``job``; the placer finds them.

    ``evicts`` are running jobs that the request may preempt: the job is placed as if they did not run, and those on
    its GPUs are preempted. ``sharers``, waiting or running, get the same GPUs.

    ``kind`` resize and migrate are for a running job, which is placed as if its GPUs were free. If the placer finds
    no place, ``otherwise`` is carried out (a back-off), or nothing, and the job's ``line`` is blocked.
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
"""What a policy returns: a request to be placed, or an action that needs no placer."""


class Part(ABC):
    """What all four have in common. A part need not subclass it: the defaults hold for what it lacks.

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
    """A part that can also ask to be called at a time of its choice."""

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """Return the next time to be called even if nothing happens: a threshold, the end of a slice, a round.

        That time comes as a :class:`Tick`; infinite, the default, for never.
        """
        return inf


class Queue(Waking):
    """Which jobs may start, and in which order: quotas, fair shares, first come first served."""

    @abstractmethod
    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> Sequence[QueuedJob]:
        """Return the jobs of ``waiting`` (in order of submission) that may start now, the first to be served first."""


class Policy(Waking):
    """Which jobs get how many GPUs.

    ``changes_running``: it also stops, resizes or moves running jobs; others are called only while jobs wait.
    ``measures_packs``: it needs the speed of packed jobs (:attr:`Running.speed`).
    """

    changes_running: ClassVar[bool] = False
    measures_packs: ClassVar[bool] = False

    @abstractmethod
    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterable[PolicyAction]:
        """Return what to do, in order: each request is placed in the state that the ones before it leave."""


class Placer(Part):
    """Which GPUs."""

    @abstractmethod
    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """Return ``gpus`` free GPUs for ``job``, or None if it has to wait: all or nothing."""


class Capacity(Part):
    """Which hosts the cluster has: loans, reclaims, failures."""

    @abstractmethod
    def changes(self, fabric: Fabric) -> Iterator[CapacityChanged]:
        """Yield the hosts that join and leave, by time; it may never end."""
