"""Actions of a cluster manager: values that an engine carries out, each with its time and its reason.

``time_s`` is the time of the decision, ``pause_s`` the seconds that it costs the job (restart, checkpoint, copy of
state).
"""

from __future__ import annotations

from dataclasses import dataclass

from workloads.managers.jobs import Waiting


@dataclass(frozen=True, slots=True)
class Start:
    """A waiting job starts on ``gpus``."""

    asked: Waiting
    """The job as it waited."""
    gpus: tuple[str, ...]
    """Names of its GPUs, in ring order."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""
    bound: tuple[str, ...] = ()
    """What the placer recorded (``Placement.bound``)."""
    pause_s: float = 0.0
    """Seconds that it costs the job before it computes again; infinite: it holds them and waits for more."""

    @property
    def job(self) -> str:
        """The job's name."""
        return self.asked.name


@dataclass(frozen=True, slots=True)
class Preempt:
    """A running job gives its GPUs back and waits; from now on it never shares GPUs with ``apart_from``."""

    job: str
    """Name of a running job."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""
    pause_s: float = 0.0
    """Seconds that it costs the job before it computes again."""
    apart_from: tuple[str, ...] = ()
    """Jobs with which it must not share GPUs from now on."""


@dataclass(frozen=True, slots=True)
class Resize:
    """A running job continues on another number of GPUs: ``gpus``, all of them."""

    job: str
    """Name of a running job."""
    gpus: tuple[str, ...]
    """Names of all its GPUs from now on."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""
    bound: tuple[str, ...] = ()
    """What the placer recorded (``Placement.bound``)."""
    pause_s: float = 0.0
    """Seconds that it costs the job before it computes again."""


@dataclass(frozen=True, slots=True)
class Migrate:
    """A running job continues on as many other GPUs."""

    job: str
    """Name of a running job."""
    gpus: tuple[str, ...]
    """Names of its GPUs from now on."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""
    bound: tuple[str, ...] = ()
    """What the placer recorded (``Placement.bound``)."""
    pause_s: float = 0.0
    """Seconds that it costs the job before it computes again."""


@dataclass(frozen=True, slots=True)
class Pack:
    """The jobs ``asked``, waiting or running, share ``gpus`` from now on, with no others."""

    asked: tuple[Waiting, ...]
    """The jobs, waiting or running."""
    gpus: tuple[str, ...]
    """Names of the GPUs that they share."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""
    pause_s: float = 0.0
    """Seconds that it costs the job before it computes again."""

    @property
    def jobs(self) -> tuple[str, ...]:
        """The jobs' names."""
        return tuple(job.name for job in self.asked)


@dataclass(frozen=True, slots=True)
class Loan:
    """``hosts`` join the cluster."""

    hosts: tuple[str, ...]
    """Names of hosts that were absent."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""


@dataclass(frozen=True, slots=True)
class Reclaim:
    """``hosts`` leave the cluster; no job runs on them."""

    hosts: tuple[str, ...]
    """Names of hosts."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A waiting job asks for GPUs from now on (``Waiting.asking_since_s``), and finds none for the moment."""

    job: str
    """Name of a waiting job."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """A waiting job backs off: it is not considered before ``again_s``, and counts one more try.

    A job that holds some of its GPUs gives them back.
    """

    job: str
    """Name of a job that waits, or holds some of its GPUs and waits for the rest."""
    again_s: float
    """When it is considered again, in seconds."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""


@dataclass(frozen=True, slots=True)
class Promote:
    """A waiting job counts as new: attained service and waiting time restart at 0, its progress stays."""

    job: str
    """Name of a waiting job."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""


@dataclass(frozen=True, slots=True)
class Demote:
    """A running job enters a lower queue; it goes on."""

    job: str
    """Name of a running job."""
    time_s: float
    """When it was decided, in seconds."""
    reason: str
    """Why, in a few words, for the record."""


Action = Start | Preempt | Resize | Migrate | Pack | Loan | Reclaim | Ask | Requeue | Promote | Demote
