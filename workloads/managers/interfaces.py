"""The four plug-in points of a cluster manager: queue, policy, placer, capacity.

The policy says who and how many, the placer where; so every policy runs with every placer. All four are
pure: what they need is in the arguments, time is passed in, and the same arguments give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

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


class Part(Protocol):
    """What all parts say of themselves: the name they are found by, and one line about what they do."""

    @property
    def name(self) -> str:
        """The name in scenario files and results."""
        ...

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        ...


class Queue(Part, Protocol):
    """Who may start, and in which order: quotas, fair shares, first come first served."""

    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> Sequence[QueuedJob]:
        """Return the jobs of ``waiting`` (in order of submission) that may start now, the first to be served first."""
        ...


class Policy(Part, Protocol):
    """Who gets how many GPUs.

    One that also changes running jobs has an attribute ``changes_running`` that is True; others are asked only while
    somebody waits. One that wants to know how fast packed jobs are (:attr:`Running.speed`) has ``measures_packs``.
    """

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterable[PolicyAction]:
        """Return what is to be done, in order: each wish is placed in the state that those before it leave."""
        ...


class Placer(Part, Protocol):
    """Which GPUs."""

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """Return ``gpus`` free GPUs for ``job``, or None if it has to wait: all or nothing."""
        ...


class Capacity(Part, Protocol):
    """Which hosts are there: loans, reclaims, failures."""

    def changes(self, fabric: Fabric) -> Iterator[CapacityChanged]:
        """Yield the hosts that come and go, by time; it may go on for ever."""
        ...


@runtime_checkable
class Wakes(Protocol):
    """A part that wants to be asked at a time when nothing happens: a threshold, the end of a slice, a round."""

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        """Return the next such time, infinite if there is none; it comes as a :class:`Tick`."""
        ...


@runtime_checkable
class Checks(Protocol):
    """A part that does not fit every fabric, or refuses some jobs, also says so beforehand."""

    def check(self, structure: Structure) -> None:
        """Raise ``ValueError``, one line, if the part cannot work on this fabric."""
        ...

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """Return why ``job`` can never start, even on an empty cluster; None if it can."""
        ...
