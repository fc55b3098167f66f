"""What a cluster manager has done: values that an engine carries out, each with its time and its reason.

``time_s`` is the moment of the decision, ``pause_s`` the seconds for which the job stands still because
of it (restart, checkpoint, copy of state).
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
    """A running job gives its GPUs back and waits again, from now on never beside ``apart_from``."""

    job: str
    time_s: float
    reason: str
    pause_s: float = 0.0
    apart_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resize:
    """A running job goes on with another number of GPUs: ``gpus``, all of them."""

    job: str
    gpus: tuple[str, ...]
    time_s: float
    reason: str
    bound: tuple[str, ...] = ()
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Migrate:
    """A running job moves to as many other GPUs."""

    job: str
    gpus: tuple[str, ...]
    time_s: float
    reason: str
    bound: tuple[str, ...] = ()
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Pack:
    """``asked``, waiting or running, share ``gpus`` from now on; nobody else has them."""

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
    """``hosts`` leave the cluster; no job runs on them any more."""

    hosts: tuple[str, ...]
    time_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """A waiting job is sent back: it is not asked for before ``again_s``, and has one attempt more."""

    job: str
    again_s: float
    time_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Promote:
    """A waiting job counts as new: its attained service and its waiting begin at nothing; its progress stays."""

    job: str
    time_s: float
    reason: str


Action = Start | Preempt | Resize | Migrate | Pack | Loan | Reclaim | Requeue | Promote
