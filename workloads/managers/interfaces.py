"""The four plug-in points of a cluster manager: queue, policy, placer, capacity.

The policy decides which jobs get how many GPUs, the placer which ones; so every policy runs with every placer. All
four are pure: what they need is in the arguments, time is passed in, and the same arguments give the same answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import ClassVar, Literal

from topologies.fabric import Fabric
from workloads.managers.actions import Action, Ask, Requeue
from workloads.managers.capacities.gpu_types import ONE_TYPE, GpuTypes
from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Structure
from workloads.managers.jobs import Placement, Waiting


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job has joined the waiting jobs."""

    job: str
    """Its name."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A running job has ended, and left the state."""

    job: str
    """Its name."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A time that a part asked for: a round, a threshold, the end of a back-off."""

    name: str = ""
    """What it is for, if it has a name."""


@dataclass(frozen=True, slots=True)
class CapacityChanged:
    """Hosts join and leave the cluster."""

    time_s: float
    """When, in seconds."""
    joining: tuple[str, ...] = ()
    """Names of hosts that join."""
    leaving: tuple[str, ...] = ()
    """Names of hosts that leave; jobs on them are preempted."""
    lendable: int | None = None
    """How many servers may be on loan from then on; None leaves the number as it is."""
    reason: str = ""
    """Why, in a few words, for the record."""


Event = Submitted | Ended | Tick | CapacityChanged


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that may start."""

    job: Waiting
    """The job."""
    line: str | None = None
    """While it cannot start, no job behind it in the same line may; None: it blocks none."""
    evicts: tuple[str, ...] = ()
    """Running jobs that the queue preempts where it finds no place beside them, the first ones first."""


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A policy requests GPUs for a job; the placer finds them."""

    job: Waiting
    """The job."""
    gpus: int
    """How many GPUs, at least 1."""
    kind: Literal["start", "resize", "migrate"] = "start"
    """``start`` a waiting job; ``resize`` or ``migrate`` a running one, placed as if its GPUs were free."""
    line: str | None = None
    """The line that is blocked if there is no place; None for none."""
    reason: str = ""
    """Why, in a few words, for the record."""
    pause_s: float = 0.0
    """Seconds that it costs the job before it computes again."""
    otherwise: Ask | Requeue | None = None
    """What to do if there is no place: begin to ask, or back off; None for nothing."""
    holds: bool = False
    """Whether it holds what there is of a place, if the placer has a part of one (``Placer.part``), and waits there."""
    evicts: tuple[str, ...] = ()
    """Running jobs that it may preempt, the first ones first: as few as give it a place on as few hosts as without
    them; none if it finds that place beside them."""
    sharers: tuple[Waiting, ...] = ()
    """Jobs, waiting or running, that get the same GPUs."""


PolicyAction = PlacementRequest | Action
"""What a policy returns: a request to be placed, or an action that needs no placer."""


class Part(ABC):
    """What all four have in common. A part need not inherit from it: what it lacks has the default given here."""

    name: ClassVar[str]
    """The name in scenario files and results."""
    summary: ClassVar[str] = ""
    """What the part does, in one line."""
    uses: Mapping[str, str] = MappingProxyType({})
    """``elastic``, ``opportunistic``, ``virtual_cluster``, ``priority``, ``stages``, ``speeds``, ``profiles`` (of
    storage and preprocessing), ``skew`` (of models) or ``loans`` (of hosts) -> the mechanism that does nothing where a
    trace, or the capacity, has none; empty where the part works without it as well."""
    ignores: Mapping[str, str] = MappingProxyType({})
    """The same inputs, where it ignores what it could use -> what is said if jobs have it."""

    def check(self, structure: Structure) -> None:  # noqa: B027 - a default, not an oversight
        """Raise ``ValueError``, one line, if the part cannot work on this fabric; by default it can."""

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """Return why ``job`` can never start, even on an empty cluster; None, the default, if it can."""
        return None


class Waking(Part):
    """A part that can also ask to be called at a time of its choice."""

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """Return the next time to be called even if nothing happens: a threshold, the end of a slice, a round.

        That time comes as a ``Tick``; infinite, the default, for never.
        """
        return inf


class Queue(Waking):
    """Which jobs may start, and in which order: quotas, fair shares, first come first served."""

    preempts: bool = False
    """Whether it names jobs that make way (``QueuedJob.evicts``) by an option that not every policy can heed."""

    def limits(self, state: ClusterState, job: Waiting) -> Mapping[str, float]:
        """Return queue -> GPUs that all its jobs may have together, of those around ``job`` that have a limit.

        They hold for jobs that grow; those that start have passed ``eligible``. None by default.
        """
        return {}

    @abstractmethod
    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> Sequence[QueuedJob]:
        """Return the jobs of ``waiting`` (in order of submission) that may start now, the first to be served first."""


class Policy(Waking):
    """Which jobs get how many GPUs."""

    changes_running: ClassVar[bool] = False
    """Whether it also stops, resizes or moves running jobs; others are called only while jobs wait."""
    measures_packs: ClassVar[bool] = False
    """Whether it needs the speed of packed jobs (``Running.speed``)."""
    measures_progress: ClassVar[bool] = False
    """Whether it needs the speed of every running job."""
    measures_jobs: bool = False
    """Whether it needs the speeds and losses of running jobs (``Waiting.measured_s`` and ``losses``)."""
    needs_remaining: ClassVar[bool] = True
    """Whether it asks how much of running jobs is left (``Running.left_s``), which is then true at every decision."""

    heeds_evicts: ClassVar[bool] = True
    """Whether it requests GPUs for queued jobs that fit only once others make way (``QueuedJob.evicts``)."""

    @abstractmethod
    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterable[PolicyAction]:
        """Return what to do, in order: each request is placed in the state that the ones before it leave."""


class Placer(Part):
    """Which GPUs.

    A placer may also have ``resized(state, running, gpus) -> Placement | None``, which is asked for the GPUs of a
    running job that grows or shrinks: free ones or its own. Without it such a job is placed as if its GPUs were free.
    """

    knows_gpu_types: ClassVar[bool] = False
    """Whether it heeds ``Waiting.gpu_type``; for others a job that asks for a type is refused."""

    @abstractmethod
    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """Return ``gpus`` free GPUs for ``job``, or None if it has to wait: all or nothing.

        ``state`` is true during the call only: what the manager does next changes it in place.
        """

    def part(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """Return free GPUs, fewer than ``gpus``, of a place that ``job`` may have once all of it is free.

        For policies whose jobs hold what there is while they wait for the rest. None, the default: none.
        """
        return None


class Capacity(Part):
    """Which hosts the cluster has: loans, reclaims, failures."""

    lends: bool = True
    """Whether hosts may be lent (``CapacityChanged.lendable``); false where it is known that none ever is."""

    def gpu_types(self, fabric: Fabric) -> GpuTypes:
        """Return the types of the fabric's GPUs; by default they are all alike."""
        return ONE_TYPE

    @abstractmethod
    def changes(self, fabric: Fabric) -> Iterator[CapacityChanged]:
        """Yield the hosts that join and leave, by time; it may never end."""
