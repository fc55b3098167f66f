"""The interface of a scheduler: it receives a :class:`ClusterView` and returns a :class:`Decision`.

Both are immutable. A scheduler only decides, and for a given seed always the same; adapters carry
its decisions out.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from topologies.fabric import Fabric, Path
from workloads.job import Flow, Job


@dataclass(frozen=True, slots=True)
class JobArrived:
    """A job is about to start; it is already in the view."""

    job: str


@dataclass(frozen=True, slots=True)
class JobDeparted:
    """A job has left the cluster; it is no longer in the view."""

    job: str


@dataclass(frozen=True, slots=True)
class JobProfiled:
    """The measured profile of a job is now available in :attr:`ClusterView.measured`."""

    job: str


@dataclass(frozen=True, slots=True)
class LinkDown:
    """A cable has failed; the view's fabric no longer contains either of its directions."""

    link: str


@dataclass(frozen=True, slots=True)
class LinkUp:
    """A failed cable works again; it is back in the view's fabric."""

    link: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A communication step of a job begins: the first of its hosts is ready to send."""

    job: str
    phase: int


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A communication step is complete on all hosts; it is no longer in the view."""

    job: str
    phase: int


Event = JobArrived | JobDeparted | JobProfiled | LinkDown | LinkUp | StepStarted | StepEnded

JOB_EVENTS: frozenset[type] = frozenset({JobArrived, JobDeparted})
STEP_EVENTS: frozenset[type] = frozenset({StepStarted, StepEnded})


@dataclass(frozen=True, slots=True)
class Step:
    """A communication step in progress; coflow schedulers call it a coflow.

    ``remaining``: flow id -> bytes of this step still to be sent. ``started_s``: when the step began,
    in seconds since the start of the run.
    """

    job: str
    phase: int
    started_s: float
    remaining: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """A job's profile per iteration, as its workers measured it (Crux section 5).

    ``flops`` is W_j; ``communication_s`` is t_j, the duration of its transfers; ``iteration_s`` is
    the length of an iteration, from the Fourier transform of the job's communication over time.
    """

    flops: float
    communication_s: float
    iteration_s: float


@dataclass(frozen=True, slots=True)
class ByteLevels:
    """A level that depends on a byte count of the message: the bytes already ``sent``, or those ``left`` to send.

    The level is the number of ``thresholds`` (bytes, ascending) that the count exceeds. The sender
    applies it.
    """

    by: Literal["sent", "left"]
    thresholds: tuple[float, ...]

    def level(self, count: float) -> int:
        """Return the level at ``count`` bytes: 0 up to and including the first threshold."""
        return bisect_left(self.thresholds, count)


@dataclass(frozen=True)
class Decision:
    """What a scheduler decides for all running jobs; in force until its next decision.

    Every field may be incomplete or empty. A missing flow or job gets the default of that field:

    * ``paths``: flow id -> links. Default: the ECMP path (:func:`controller.ecmp_hash.with_default_paths`).
    * ``levels``: flow id or job name -> priority level, 0 highest. Default: the lowest level.
    * ``rates``: flow id -> bit/s; 0 makes the flow send nothing for now. Default: no rate limit.
    * ``shifts``: job name -> seconds from the job's arrival by which its communication is delayed; with ``periods``
      (job name -> seconds) it is kept at that phase of the period. Default: no shift.

    Fields for special cases:

    * ``hashed``: flows whose path the switches choose themselves, by their select groups; a scheduler that fills it
      says so by :attr:`Scheduler.switches_hash`.
    * ``byte_levels``: flow id or job name -> level by the bytes of the message, in place of a fixed level.
    * ``sender_marked``: True if levels change with every communication step; the first switch then trusts the mark
      that the sender sets, and does not set its own.
    * ``ports``: flow id -> TCP source port, where a path is enforced by a port that hashes to it.
    * ``exclusive``: PCIe links (PCIe switch to NIC) on which jobs take turns: at the sender, a job waits while a job
      of a higher level is sending a message there.
    * ``notes``: values to record with the decision (intensities, k_j), JSON-ready; they have no effect.
    """

    paths: Mapping[str, Path] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    shifts: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, object] = field(default_factory=dict)
    hashed: tuple[str, ...] = ()
    byte_levels: Mapping[str, ByteLevels] = field(default_factory=dict)
    sender_marked: bool = False
    periods: Mapping[str, float] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    exclusive: tuple[str, ...] = ()

    def byte_levels_of(self, flow: Flow) -> ByteLevels | None:
        """The byte levels of ``flow``: its own, else its job's, else None."""
        return self.byte_levels.get(flow.id, self.byte_levels.get(flow.job))

    def trusts_sender(self, flow: Flow) -> bool:
        """Whether the first switch keeps the sender's mark on packets of ``flow``."""
        return self.sender_marked or self.byte_levels_of(flow) is not None

    def level_of(self, flow: Flow, lowest: int) -> int:
        """The level of ``flow``: its own, else its job's, else ``lowest``."""
        return self.levels.get(flow.id, self.levels.get(flow.job, lowest))


@dataclass(frozen=True)
class ClusterView:
    """Read-only state of the cluster at an event.

    * ``fabric``: the topology, without links that have failed.
    * ``jobs``: name -> running job, in order of arrival; at a :class:`JobArrived` the new job is included.
    * ``level_count``: K, the number of strict priority levels. ``seed`` fixes every hash and every random draw.
    * ``decision``: the decision in force before this event.
    * ``steps``: job -> its communication step in progress, for jobs that have one.
    * ``measured``: job -> measured profile, for jobs that have one.
    * ``profiling``: jobs that are being measured and should run undisturbed.
    * ``throughput``: job -> recent iterations per second, divided by those of the job alone on the cluster.
    * ``time_s``: seconds since the start of the run.
    """

    fabric: Fabric
    jobs: Mapping[str, Job]
    level_count: int = 8
    seed: int = 1
    decision: Decision = field(default_factory=Decision)
    steps: Mapping[str, Step] = field(default_factory=dict)
    measured: Mapping[str, Measured] = field(default_factory=dict)
    profiling: frozenset[str] = frozenset()
    throughput: Mapping[str, float] = field(default_factory=dict)
    time_s: float = 0.0

    @property
    def levels(self) -> int:
        """Deprecated: the name of :attr:`level_count` until version 0.1."""
        warnings.warn("ClusterView.levels is now ClusterView.level_count", DeprecationWarning, stacklevel=2)
        return self.level_count

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The flows of all running jobs, job by job."""
        return tuple(flow for job in self.jobs.values() for flow in job.flows)


class Scheduler(ABC):
    """The base class of schedulers: :meth:`decide` is called at each event.

    * ``name``: the scheduler's name in scenario files and reports. ``summary``: what it does, in one line.
    * ``events``: the event types at which it is called; for failed links every scheduler is called.
    * ``decides``: the fields of a :class:`Decision` that it fills: ``paths``, ``levels``, ``rates``, ``shifts``.
    * ``source``: the publication that it follows.
    * ``alone``: True to run each job by itself, without the others.
    * ``switches_hash``: True if its decisions have ``hashed`` flows; not every datapath can hash.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    events: frozenset[type] = JOB_EVENTS
    decides: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[str] = ""
    alone: ClassVar[bool] = False
    switches_hash: ClassVar[bool] = False

    @abstractmethod
    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the decision for all running jobs, not only for the job of ``event``."""


class _Completed(Scheduler):
    """Wraps a scheduler that does not inherit from :class:`Scheduler`, and adds defaults for missing attributes."""

    def __init__(self, scheduler: object) -> None:
        said = ("name", "summary", "events", "decides", "source", "alone", "switches_hash", "decide")
        vars(self).update({key: getattr(scheduler, key) for key in said if hasattr(scheduler, key)})
        vars(self)["events"] = frozenset(self.events)
        self._scheduler = scheduler

    def __getattr__(self, name: str) -> object:
        return getattr(vars(self)["_scheduler"], name)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Never called: the wrapped scheduler's own ``decide`` replaces it on the instance."""
        raise NotImplementedError


def as_scheduler(made: object) -> Scheduler:
    """Return ``made`` as a :class:`Scheduler`; an object with a name and ``decide`` need not inherit from it."""
    return made if isinstance(made, Scheduler) else _Completed(made)
