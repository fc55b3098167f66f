"""The account of a job under a cluster manager, and the steps of a manager's action.

An action becomes steps in one place, for all that run jobs: the engines, replays, and
:mod:`workloads.managers.durations`. Pure; time is passed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from workloads.managers.actions import Action, Migrate, Pack, Preempt, Requeue, Resize, Start


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """A job under a manager: when it was submitted, started and ended (None: not within the run), what it used.

    ``alone_s`` is how long it would have run without contention on its reference placement, GPUs that lie together. It
    is no lower bound: over more hosts a job has more NICs and may be faster. ``busy_gpu_s``: time its GPUs computed,
    ``held_s`` for how long it had its GPUs. ``waits``: cause (:data:`workloads.managers.ledger.CAUSES`) -> seconds
    without them. ``status``: passed, killed or unsuccessful, after so many ``attempts``. ``holds``: how many GPUs it
    holds at the end while it waits for the rest.
    """

    name: str
    gpus: int
    submit_s: float
    start_s: float | None
    end_s: float | None
    alone_s: float
    busy_gpu_s: float = 0.0
    allocated_gpu_s: float = 0.0
    held_s: float = 0.0
    preemptions: int = 0
    migrations: int = 0
    waits: Mapping[str, float] = field(default_factory=dict)
    status: str = "passed"
    attempts: int = 1
    holds: int = 0

    @property
    def jct_s(self) -> float | None:
        """Seconds from submission to end."""
        return None if self.end_s is None else self.end_s - self.submit_s

    @property
    def failed_attempts(self) -> int:
        """Attempts that failed: all of a job that ended without success, all but the last of any other."""
        return self.attempts - (self.end_s is None or self.status != "unsuccessful")


@dataclass(slots=True, eq=False)
class Account:
    """The account of a job that asks for ``asked_gpus``: it holds ``gpus``; times are added up until ``since_s``.

    ``busy_gpu_s``: GPU time that computed, where the engine measures it. A resize counts as a migration. ``holding``:
    it holds some of its GPUs and waits for the rest: that counts as GPU time and as waiting, and to get more, or to
    give them back, is no migration and no preemption.
    """

    name: str
    asked_gpus: int
    submit_s: float
    gpus: tuple[str, ...] = ()
    since_s: float = 0.0
    start_s: float | None = None
    end_s: float | None = None
    held_s: float = 0.0
    held_gpu_s: float = 0.0
    busy_gpu_s: float = 0.0
    preemptions: int = 0
    migrations: int = 0
    attempts: int = 1
    holding: bool = False
    stopped_s: float | None = None

    def advance(self, now_s: float) -> float:
        """Add up the time until ``now_s``; return how long that was."""
        seconds = now_s - self.since_s
        if self.gpus:
            self.held_s += 0.0 if self.holding else seconds
            self.held_gpu_s += seconds * len(self.gpus)
        self.since_s = now_s
        return seconds

    def hold(self, gpus: tuple[str, ...], now_s: float) -> None:
        """Hold ``gpus``, and no others, from now on."""
        self.advance(now_s)
        self.gpus = gpus

    def move(self, gpus: tuple[str, ...], now_s: float) -> None:
        """Continue on ``gpus``: a migration, unless the job held none.

        A job that was preempted at the same moment has not waited: that was a migration, too.
        """
        moved = not self.gpus and self.stopped_s == now_s
        self.preemptions -= moved
        self.migrations += moved or (bool(self.gpus) and not self.holding)
        self.hold(gpus, now_s)

    def preempt(self, now_s: float) -> None:
        """Give all GPUs back and wait."""
        self.preemptions += not self.holding
        self.stopped_s = None if self.holding else now_s
        self.hold((), now_s)

    def begin(self, now_s: float) -> None:
        """Start, if the job has not started before."""
        if self.start_s is None:
            self.start_s = now_s

    def fail(self, now_s: float) -> None:
        """End an attempt that is to be repeated."""
        self.attempts += 1
        self.hold((), now_s)

    def end(self, now_s: float) -> None:
        """End for good."""
        self.hold((), now_s)
        self.end_s = now_s

    def outcome(
        self, now_s: float, alone_s: float, waits: Mapping[str, float] | None = None, status: str = "passed"
    ) -> JobOutcome:
        """Return the outcome of the job; one that holds GPUs does so until ``now_s``."""
        open_s = now_s - self.since_s if self.gpus else 0.0
        return JobOutcome(
            self.name,
            self.asked_gpus,
            self.submit_s,
            self.start_s,
            self.end_s,
            alone_s,
            self.busy_gpu_s,
            self.held_gpu_s + open_s * len(self.gpus),
            self.held_s + (0.0 if self.holding else open_s),
            self.preemptions,
            self.migrations,
            dict(waits or {}),
            status,
            self.attempts,
            len(self.gpus) if self.holding else 0,
        )


@dataclass(frozen=True, slots=True)
class TakeOff:
    """Stop a job on the GPUs that it holds."""

    job: str


@dataclass(frozen=True, slots=True)
class PutOn:
    """Let a job run on ``gpus`` after ``pause_s``; an infinite pause: it holds them and waits for more."""

    job: str
    gpus: tuple[str, ...]
    pause_s: float


@dataclass(frozen=True, slots=True)
class ShareGpus:
    """From now on ``jobs`` share ``gpus``; those that were elsewhere have been put there."""

    jobs: tuple[str, ...]
    gpus: tuple[str, ...]


JobStep = TakeOff | PutOn | ShareGpus


def carry_out(action: Action, accounts: Mapping[str, Account], now_s: float) -> Iterator[JobStep]:
    """Yield what ``action`` does to jobs, step by step, and keep their ``accounts``.

    Carry a step out before taking the next: between the two the job's account changes. An action that changes no
    job's progress (hosts join or leave, a job backs off) has no steps.
    """
    match action:
        case Start() | Resize() | Migrate():
            yield from _put_on(accounts[action.job], action.gpus, action.pause_s, now_s)
        case Preempt():
            yield TakeOff(action.job)
            accounts[action.job].preempt(now_s)
        case Requeue() if accounts[action.job].gpus:  # it held some of its GPUs
            yield TakeOff(action.job)
            accounts[action.job].hold((), now_s)
        case Pack():
            for name in action.jobs:
                if accounts[name].gpus != action.gpus:  # the others stay where they are
                    yield from _put_on(accounts[name], action.gpus, action.pause_s, now_s)
            yield ShareGpus(action.jobs, action.gpus)
        case _:
            pass


def _put_on(account: Account, gpus: tuple[str, ...], pause_s: float, now_s: float) -> Iterator[JobStep]:
    if account.gpus:
        yield TakeOff(account.name)
    account.move(gpus, now_s)
    account.holding = pause_s == inf
    yield PutOn(account.name, gpus, pause_s)
