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
    gpus: tuple[str, ...]
    time_s: float
    reason: str
    bound: tuple[str, ...] = ()
    pause_s: float = 0.0

    @property
    def job(self) -> str:
        """The job's name."""
        return self.asked.name


@dataclass(frozen=True, slots=True)
class Preempt:
    """A running job gives its GPUs back and waits; from now on it never shares GPUs with ``apart_from``."""

    job: str
    time_s: float
    reason: str
    pause_s: float = 0.0
    apart_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resize:
    """A running job continues on another number of GPUs: ``gpus``, all of them."""

    job: str
    gpus: tuple[str, ...]
    time_s: float
    reason: str
    bound: tuple[str, ...] = ()
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Migrate:
    """A running job continues on as many other GPUs."""

    job: str
    gpus: tuple[str, ...]
    time_s: float
    reason: str
    bound: tuple[str, ...] = ()
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Pack:
    """The jobs ``asked``, waiting or running, share ``gpus`` from now on, with no others."""

    asked: tuple[Waiting, ...]
    gpus: tuple[str, ...]
    time_s: float
    reason: str
    pause_s: float = 0.0

    @property
    def jobs(self) -> tuple[str, ...]:
        """The jobs' names."""
        return tuple(job.name for job in self.asked)


@dataclass(frozen=True, slots=True)
class Loan:
    """``hosts`` join the cluster."""

    hosts: tuple[str, ...]
    time_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Reclaim:
    """``hosts`` leave the cluster; no job runs on them."""

    hosts: tuple[str, ...]
    time_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """A waiting job backs off: it is not considered before ``again_s``, and counts one more attempt."""

    job: str
    again_s: float
    time_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Promote:
    """A waiting job counts as new: attained service and waiting time restart at 0, its progress stays."""

    job: str
    time_s: float
    reason: str


Action = Start | Preempt | Resize | Migrate | Pack | Loan | Reclaim | Requeue | Promote
