"""What a scheduler sees and what it says: :class:`ClusterView` in, :class:`Decision` out.

Both are immutable. A scheduler is pure and deterministic for a given seed; adapters carry its
decisions out.
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
    """A job is about to start."""

    job: str


@dataclass(frozen=True, slots=True)
class JobDeparted:
    """A job has left; it is no longer in the view."""

    job: str


@dataclass(frozen=True, slots=True)
class JobProfiled:
    """The measured profile of a job has come in; it is in :attr:`ClusterView.measured`."""

    job: str


@dataclass(frozen=True, slots=True)
class LinkDown:
    """A cable has failed; neither direction of it is in the view's fabric any more."""

    link: str


@dataclass(frozen=True, slots=True)
class LinkUp:
    """A cable that had failed carries again; it is back in the view's fabric."""

    link: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A communication step of a job begins: its first host is ready to send."""

    job: str
    phase: int


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A communication step is through on all hosts; it is no longer in the view."""

    job: str
    phase: int


Event = JobArrived | JobDeparted | JobProfiled | LinkDown | LinkUp | StepStarted | StepEnded

JOB_EVENTS: frozenset[type] = frozenset({JobArrived, JobDeparted})
STEP_EVENTS: frozenset[type] = frozenset({StepStarted, StepEnded})


@dataclass(frozen=True, slots=True)
class Step:
    """A communication step under way: what coflow schedulers call a coflow.

    ``remaining``: flow id -> bytes of this step still to be sent. ``started_s`` is when it began,
    in seconds of the run.
    """

    job: str
    phase: int
    started_s: float
    remaining: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """A job's profile as its workers measured it, per iteration (Crux section 5).

    ``flops`` is W_j; ``communication_s`` is t_j, the duration of its transfers; ``iteration_s``
    comes from the Fourier transform of its communication over time.
    """

    flops: float
    communication_s: float
    iteration_s: float


@dataclass(frozen=True, slots=True)
class ByteLevels:
    """A level that follows a count of bytes of the message: those ``sent``, or those ``left``.

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
    """Paths, levels, rates and shifts in force.

    ``paths``: flow id -> links. ``levels``: flow id or job name -> level, 0 highest.
    ``rates``: flow id -> bit/s, 0 to send nothing for now. ``shifts``: job name -> seconds by which
    its communication starts later than at the job's arrival; with ``periods`` (job name -> seconds)
    it is kept at that phase of the period. A flow that is missing from a column has that column's
    default: ECMP path (:func:`controller.schedulers.ecmp.with_default_paths`), lowest level, no rate limit, no
    shift. ``hashed`` names the flows whose path is left to the select groups of the switches.

    ``byte_levels``: flow id or job name -> level by the bytes of its message, in place of a fixed
    one. ``sender_marked``: levels change with every communication step, so the first switch trusts
    the sender's mark and does not set its own. ``ports``: flow id -> TCP source port, where a path is
    enforced by a port that hashes to it. ``exclusive`` names PCIe links (PCIe switch to NIC) on which jobs
    take turns: at the sender, a job waits while one of a higher level has a message under way there.
    ``notes`` holds what the scheduler wants on record (intensities, k_j), JSON-ready; it changes nothing.
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
        """The byte-counted level of ``flow``: its own, else its job's, else None."""
        return self.byte_levels.get(flow.id, self.byte_levels.get(flow.job))

    def trusts_sender(self, flow: Flow) -> bool:
        """Whether the first switch leaves the sender's mark on ``flow`` as it is."""
        return self.sender_marked or self.byte_levels_of(flow) is not None

    def level_of(self, flow: Flow, lowest: int) -> int:
        """The level of ``flow``: its own, else its job's, else ``lowest``."""
        return self.levels.get(flow.id, self.levels.get(flow.job, lowest))


@dataclass(frozen=True)
class ClusterView:
    """Read-only state of the cluster at an event.

    ``jobs`` are the running jobs (an arriving one included) in order of arrival. ``level_count`` is K,
    the number of strict priority levels; ``seed`` fixes every hash and every random draw.

    ``steps``: job -> its communication step under way. ``measured``: job -> profile, where there is
    one. ``profiling``: jobs that run undisturbed to be measured. ``throughput``: job -> recent
    iterations per second over those of the job alone. ``time_s``: seconds of the run.
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
        """The name that :attr:`level_count` had until version 0.1."""
        warnings.warn("ClusterView.levels is now ClusterView.level_count", DeprecationWarning, stacklevel=2)
        return self.level_count

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The flows of all running jobs, job by job."""
        return tuple(flow for job in self.jobs.values() for flow in job.flows)


class Scheduler(ABC):
    """Decides at each event.

    ``name`` is what scenario files and reports call it, ``summary`` what it does, in one line. ``events`` are the types
    of events it wants to hear (of links that fail all schedulers hear). ``decides`` are the columns of a
    :class:`Decision` that it fills: ``paths``, ``levels``, ``rates``, ``shifts``. ``source`` is the publication it
    follows. ``alone`` is True to run each job by itself.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    events: frozenset[type] = JOB_EVENTS
    decides: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[str] = ""
    alone: ClassVar[bool] = False

    @abstractmethod
    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the decision for all running jobs."""


class _Completed(Scheduler):
    """A scheduler that does not inherit from :class:`Scheduler`, with the defaults of what it does not say."""

    def __init__(self, scheduler: object) -> None:
        said = ("name", "summary", "events", "decides", "source", "alone", "decide")
        vars(self).update({key: getattr(scheduler, key) for key in said if hasattr(scheduler, key)})
        vars(self)["events"] = frozenset(self.events)
        self._scheduler = scheduler

    def __getattr__(self, name: str) -> object:
        return getattr(vars(self)["_scheduler"], name)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Never called: the scheduler's own stands before it."""
        raise NotImplementedError


def as_scheduler(made: object) -> Scheduler:
    """Return ``made`` as a :class:`Scheduler`; one that has a name and ``decide`` need not inherit from it."""
    return made if isinstance(made, Scheduler) else _Completed(made)
