"""The interface of a scheduler: it receives a ``ClusterView`` and returns a ``Decision``.

Both are immutable. A scheduler only decides, and for a given seed always the same; adapters carry
its decisions out.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from topologies.fabric import Fabric, Path
from workloads.job import Flow, Job


@dataclass(frozen=True, slots=True)
class JobArrived:
    """A job is about to start, or a real program has opened other connections; it is already in the view."""

    job: str
    """The job that has arrived: its name."""


@dataclass(frozen=True, slots=True)
class JobDeparted:
    """A job has left the cluster; it is no longer in the view."""

    job: str
    """The job that has left: its name."""


@dataclass(frozen=True, slots=True)
class JobProfiled:
    """The measured profile of a job is now available in ``ClusterView.measured``."""

    job: str
    """The job that was measured: its name."""


@dataclass(frozen=True, slots=True)
class LinkDown:
    """A cable has failed; the view's fabric no longer contains either of its directions."""

    link: str
    """One direction of the cable, by its name in ``Fabric.links``."""
    others: tuple[str, ...] = ()
    """Those that failed at the same moment, as all cables of a switch do."""


@dataclass(frozen=True, slots=True)
class LinkUp:
    """A failed cable works again; it is back in the view's fabric."""

    link: str
    """One direction of the cable, by its name in ``Fabric.links``."""
    others: tuple[str, ...] = ()
    """Those that came back at the same moment."""


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A communication step of a job begins: the first of its hosts is ready to send."""

    job: str
    """The job whose step it is."""
    phase: int
    """Index of the step in ``Job.phases``."""


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A communication step is complete on all hosts; it is no longer in the view."""

    job: str
    """The job whose step it is."""
    phase: int
    """Index of the step in ``Job.phases``."""


@dataclass(frozen=True, slots=True)
class ThroughputMeasured:
    """Time has passed: ``ClusterView.throughput`` is up to date, as it also is when a job arrives."""


Event = JobArrived | JobDeparted | JobProfiled | LinkDown | LinkUp | StepStarted | StepEnded | ThroughputMeasured
"""What a scheduler is called for."""

JOB_EVENTS: frozenset[type] = frozenset({JobArrived, JobDeparted})
"""What a scheduler hears of unless it says otherwise."""
STEP_EVENTS: frozenset[type] = frozenset({StepStarted, StepEnded})
"""For coflow schedulers; decisions at these events go to the senders, not to the switches."""


@dataclass(frozen=True, slots=True)
class Step:
    """A communication step in progress; coflow schedulers call it a coflow."""

    job: str
    """The job whose step it is."""
    phase: int
    """Index of the step in ``Job.phases``."""
    started_s: float
    """When the step began, in seconds since the start of the run."""
    remaining: Mapping[str, float]
    """Flow id -> bytes of this step that are still to be sent."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A job's profile per iteration, as its workers measured it (Crux section 5)."""

    flops: float
    """W_j: FLOPs of an iteration over all GPUs of the job."""
    communication_s: float
    """t_j: seconds from the first to the last byte of an iteration's transfers."""
    iteration_s: float
    """Seconds of an iteration, from the Fourier transform of the communication over time."""


@dataclass(frozen=True, slots=True)
class ByteLevels:
    """A level that depends on a byte count of the message: the number of thresholds that the count exceeds.

    The sender applies it, with every write; no switch is asked.
    """

    by: Literal["sent", "left"]
    """Whether the bytes ``sent`` of the message count, or those ``left`` to send."""
    thresholds: tuple[float, ...]
    """Bytes, ascending; at most one fewer than there are levels."""

    def level(self, count: float) -> int:
        """Return the level at ``count`` bytes: 0 up to and including the first threshold."""
        return bisect_left(self.thresholds, count)


@dataclass(frozen=True, slots=True)
class ByteWeights:
    """A share of links that depends on how much of an iteration's bytes a flow has sent.

    Flows of a level share a link in proportion to their weights. The flow engine computes that; an emulation gives the
    flow a window of that share, by bytes received, from the job's arrival on.
    """

    parts: tuple[float, ...]
    """Weights above 0, one for each of as many equal parts of the bytes that the flow sends in an iteration."""


@dataclass(frozen=True)
class Decision:
    """What a scheduler decides for all running jobs; in force until its next decision.

    Every field may be incomplete or empty: a flow or job that it does not name has the default of that field. Names
    of jobs that have left may stay. A scheduler of another package that names anything else, or a value that cannot be
    carried out, ends the run with one line.
    """

    paths: Mapping[str, Path] = field(default_factory=dict)
    """Flow id -> names of the links from its source port to its target port, one of ``Fabric.candidate_paths``.

    Default: the ECMP path.
    """
    levels: Mapping[str, int] = field(default_factory=dict)
    """Flow id or job name -> priority level, 0 (served first) to ``level_count`` - 1. Default: the lowest level.

    A flow's own level goes before its job's.
    """
    rates: Mapping[str, float] = field(default_factory=dict)
    """Flow id -> bit/s of payload at which the sender sends; 0 holds the flow back. Default: no limit."""
    shifts: Mapping[str, float] = field(default_factory=dict)
    """Job name -> seconds from the job's arrival by which its communication is delayed. Default: no shift.

    With a period the job is kept at that phase of it, counted from the start of the run.
    """
    notes: Mapping[str, object] = field(default_factory=dict)
    """Values to record with the decision, such as intensities: JSON-ready, by any name. They have no effect."""
    hashed: tuple[str, ...] = ()
    """Ids of flows whose path the switches choose by a hash of their own; needs ``Scheduler.switches_hash``."""
    byte_levels: Mapping[str, ByteLevels] = field(default_factory=dict)
    """Flow id or job name -> level by the bytes of the message, in place of a fixed level."""
    weights: Mapping[str, ByteWeights] = field(default_factory=dict)
    """Flow id or job name -> its share of links among flows of its level. Default: all alike.

    Weights of a flow hold for as long as its job runs.
    """
    sender_marked: bool = False
    """True if levels change with every communication step: the first switch then trusts the sender's mark."""
    periods: Mapping[str, float] = field(default_factory=dict)
    """Job name -> seconds of the period in which its shift keeps it."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Flow id -> TCP source port, 1 to 65535, where a port that hashes to the path enforces it.

    Real programs choose their ports: their connections (``Flow.two_way``) keep them.
    """
    exclusive: tuple[str, ...] = ()
    """PCIe links (PCIe switch to NIC) on which jobs take turns by level, at the sender."""
    cut_off: tuple[str, ...] = ()
    """Names of jobs that wait because failures have left no way between their ports; the controller says which."""

    def byte_levels_of(self, flow: Flow) -> ByteLevels | None:
        """The byte levels of ``flow``: its own, else its job's, else None."""
        return self.byte_levels.get(flow.id, self.byte_levels.get(flow.job))

    def weights_of(self, flow: Flow) -> ByteWeights | None:
        """The weights of ``flow``: its own, else its job's, else None."""
        return self.weights.get(flow.id, self.weights.get(flow.job))

    def trusts_sender(self, flow: Flow) -> bool:
        """Whether the first switch keeps the sender's mark on packets of ``flow``."""
        return self.sender_marked or self.byte_levels_of(flow) is not None

    def level_of(self, flow: Flow, lowest: int) -> int:
        """The level of ``flow``: its own, else its job's, else ``lowest``."""
        return self.levels.get(flow.id, self.levels.get(flow.job, lowest))


@dataclass(frozen=True)
class ClusterView:
    """Read-only state of the cluster at an event: all that a scheduler knows."""

    fabric: Fabric
    """The topology, without links that have failed, and without ports whose cable has failed."""
    jobs: Mapping[str, Job]
    """Name -> running job, in order of arrival; at a ``JobArrived`` the new job is included.

    Jobs whose ports do not all reach each other, because cables have failed, are left out until they do. A connection
    whose port has lost its cable is shown between ports of the same NICs that have one.
    """
    level_count: int = 8
    """K, the number of strict priority levels: 0 is served first, K - 1 last."""
    seed: int = 1
    """Fixes every hash and every random draw of the run."""
    decision: Decision = field(default_factory=Decision)
    """The decision in force before this event, in a run with the ECMP paths of flows that it left open."""
    steps: Mapping[str, Step] = field(default_factory=dict)
    """Job name -> its communication step in progress, for jobs that have one."""
    measured: Mapping[str, Measured] = field(default_factory=dict)
    """Job name -> measured profile, for jobs that have one."""
    profiling: frozenset[str] = frozenset()
    """Names of jobs that are being measured and should run undisturbed."""
    throughput: Mapping[str, float] = field(default_factory=dict)
    """Job name -> recent iterations per second, divided by those of the job alone on the cluster."""
    time_s: float = 0.0
    """Seconds since the start of the run."""
    keeps_notes: bool = True
    """Whether anyone reads ``Decision.notes``. In replays nobody does, so a scheduler need not compute them."""

    @property
    def levels(self) -> int:
        """Deprecated: the name of ``level_count`` until version 0.1."""
        warnings.warn("ClusterView.levels is now ClusterView.level_count", DeprecationWarning, stacklevel=2)
        return self.level_count

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The flows of all running jobs, job by job."""
        return tuple(flow for job in self.jobs.values() for flow in job.flows)


class Scheduler(ABC):
    """The base class of schedulers. The same view gives the same decision: no clock, no random numbers of its own.

    Keyword arguments of the constructor are its options in scenario files; one called ``seed`` receives the run's seed.
    A constructor raises ``ValueError`` with one line for an option that is wrong.
    """

    name: ClassVar[str]
    """The name in scenario files and reports."""
    summary: ClassVar[str] = ""
    """What it does, in one line."""
    events: frozenset[type] = JOB_EVENTS
    """The types of events at which it is called; for failed links every scheduler is called."""
    every_s: float = 0.0
    """Seconds between events ``ThroughputMeasured``, for schedulers that list it in ``events``; 0 for none."""
    decides: ClassVar[tuple[str, ...]] = ()
    """The fields of a ``Decision`` that it fills: ``paths``, ``levels``, ``rates``, ``shifts``, ``weights``."""
    source: ClassVar[str] = ""
    """The publication that it follows."""
    alone: ClassVar[bool] = False
    """True to run each job by itself, without the others."""
    switches_hash: ClassVar[bool] = False
    """True if its decisions have ``hashed`` flows; not every datapath can hash."""

    @abstractmethod
    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the decision for all running jobs, not only for the job of ``event``.

        Whatever it raises ends the run with one line that names the scheduler, the file and the line.
        """


class _Completed(Scheduler):
    """Wraps a scheduler that does not inherit from ``Scheduler``, and adds defaults for missing attributes."""

    def __init__(self, scheduler: Any) -> None:
        said = ("name", "summary", "events", "every_s", "decides", "source", "alone", "switches_hash")
        vars(self).update({key: getattr(scheduler, key) for key in said if hasattr(scheduler, key)})
        vars(self)["events"] = frozenset(self.events)
        self._scheduler = scheduler

    def __getattr__(self, name: str) -> object:
        return getattr(vars(self)["_scheduler"], name)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the decision of the wrapped scheduler."""
        decision: Decision = self._scheduler.decide(view, event)
        return decision


def as_scheduler(made: object) -> Scheduler:
    """Return ``made`` as a ``Scheduler``; an object with a name and ``decide`` need not inherit from it."""
    return made if isinstance(made, Scheduler) else _Completed(made)
