"""Jobs under a cluster manager: what starts and stops when, in stints. Pure; engines carry it out.

A stint is a stretch of a job on one set of GPUs. For the network it is a job of its own: ``gpt``, then
``gpt@2``, .. with the iterations that are left. The iteration that a stop cuts off is lost, as with a checkpoint
after each iteration. On other numbers of GPUs what is left is divided over them: weak scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, inf

from testbed.errors import RunFailedError
from testbed.experiment.experiment import Managed, Submission
from testbed.results.job_outcome import JobOutcome
from topologies.fabric import Fabric
from workloads.analysis import Isolated, isolated
from workloads.build import JobSpec, build_job
from workloads.connections import PortBook
from workloads.job import Job
from workloads.managers.actions import Action, Migrate, Pack, Preempt, Resize, Start
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.manager import Manager
from workloads.managers.registry import GROUPS, manager
from workloads.traces.job_failures import ended_early, fate_of, with_prerun, without_repeats


@dataclass(frozen=True, slots=True)
class JobChanges:
    """What an engine is to do now: end the stints ``stopped``, then let those ``started`` arrive at their start."""

    stopped: tuple[str, ...] = ()
    started: tuple[Job, ...] = ()


@dataclass
class _Account:
    """What a job has had.

    ``attempts``: iterations of each, all but the last of which fail; ``failed`` of them have. ``left``: iterations
    times GPUs that are still to be made in the one under way; ``stint``: the stretch of it under way.
    """

    submission: Submission
    alone: Isolated
    attempts: tuple[int, ...]
    status: str
    left: float = 0.0
    failed: int = 0
    gpus: tuple[str, ...] = ()
    stint: Job | None = None
    since_s: float = 0.0
    first_s: float | None = None
    end_s: float | None = None
    held_s: float = 0.0
    held_gpu_s: float = 0.0
    preemptions: int = 0
    moves: int = 0
    stints: list[str] = field(default_factory=list)

    @property
    def alone_s(self) -> float:
        """Seconds of the whole job, its failed attempts included, on the GPUs it asks for, alone."""
        return sum(self.attempts) * self.alone.iteration_s

    def begin_attempt(self) -> None:
        """All of the next attempt is still to be made."""
        self.left = float(self.attempts[self.failed] * self.submission.gpus)

    def hold(self, gpus: tuple[str, ...], now_s: float) -> None:
        """Have ``gpus``, and no others, from now on."""
        self.held_s += (now_s - self.since_s) * bool(self.gpus)
        self.held_gpu_s += (now_s - self.since_s) * len(self.gpus)
        self.gpus, self.since_s = gpus, now_s


@dataclass
class _Round:
    """What one round of decisions leads to; ``made``: stint -> iterations that it has completed."""

    now_s: float
    made: Callable[[str], int]
    stopped: list[str] = field(default_factory=list)
    started: dict[str, Job] = field(default_factory=dict)


def manager_of(managed: Managed, seed: int) -> Manager:
    """Return the manager that ``managed`` names; ``ValueError``, one line, for an unknown part or option."""
    options = {point: managed.options.get(point, {}) for point in GROUPS}
    return manager(managed.placer, managed.queue, managed.policy, managed.capacity, options, seed)


class ManagedJobs:
    """The jobs of a run under its manager. ``stints``: all that there have been."""

    def __init__(self, managed: Managed, fabric: Fabric, seed: int) -> None:
        """``ValueError``, one line, if the manager does not fit the fabric; ``JobError`` for a job that is wrong."""
        self._fabric = fabric
        self._ledger = Ledger(manager_of(managed, seed), fabric)
        self._coming = sorted(managed.submissions, key=lambda each: each.spec.start_s)
        self._ports = PortBook(seed)
        self._job_failures, self._seed = managed.job_failures, seed
        self._accounts: dict[str, _Account] = {}
        self._known = {each.spec.name: self._alone(each.spec, each.gpus) for each in managed.submissions}
        self._owner: dict[str, str] = {}
        self.stints: list[Job] = []

    @property
    def refused(self) -> Mapping[str, str]:
        """Jobs that could never start, each with the reason."""
        return self._ledger.refused

    @property
    def unfinished(self) -> int:
        """Jobs that are still to come, to start or to end."""
        ended = sum(account.end_s is not None for account in self._accounts.values())
        return len(self._known) - ended - len(self.refused)

    @property
    def total(self) -> int:
        """All jobs."""
        return len(self._known)

    def next_s(self) -> float:
        """The next time at which :meth:`decide` is to be called though no stint ends; infinite for never."""
        return min(self._coming[0].spec.start_s if self._coming else inf, self._ledger.next_s())

    def ended(self, stint: str, now_s: float) -> None:
        """A stint has made all its iterations: its job is done, or has failed and is tried again from the beginning."""
        name = self._owner[stint]
        account = self._accounts[name]
        account.left, account.stint = 0.0, None
        account.hold((), now_s)
        self._ledger.end(name, now_s)
        if account.failed + 1 == len(account.attempts):
            account.end_s = now_s
            return
        account.failed += 1
        account.begin_attempt()
        self._ledger.submit(replace(self._asks(account), waiting_since_s=now_s, attempts=account.failed))

    def decide(self, now_s: float, made: Callable[[str], int]) -> JobChanges:
        """Ask the manager about all that has happened; ``made``: stint -> iterations that it has completed.

        ``RunFailedError`` for what a run cannot carry out.
        """
        while self._coming and self._coming[0].spec.start_s <= now_s:
            self._submit(self._coming.pop(0))

        def remaining_s(name: str) -> float:
            account = self._accounts[name]
            return account.alone.iteration_s * _left(account, made) / account.submission.gpus

        try:
            actions = self._ledger.decide(now_s, remaining_s)
        except ValueError as error:
            raise RunFailedError(f"the cluster manager failed: {error}") from error
        this = _Round(now_s, made)
        for action in actions:
            self._carry_out(action, this)
        self.stints += this.started.values()
        return JobChanges(tuple(this.stopped), tuple(this.started.values()))

    def outcomes(self, now_s: float) -> tuple[JobOutcome, ...]:
        """What became of each job that was submitted; those that hold GPUs do so until ``now_s``."""
        return tuple(self._outcome(name, account, now_s) for name, account in self._accounts.items())

    def stints_of(self) -> dict[str, tuple[str, ...]]:
        """Job -> its stints, in order."""
        return {name: tuple(account.stints) for name, account in self._accounts.items()}

    def _submit(self, submission: Submission) -> None:
        name, alone = submission.spec.name, self._known[submission.spec.name]
        account = _Account(submission, alone, *self._attempts(submission, alone))
        account.begin_attempt()
        if self._ledger.submit(self._asks(account)):
            self._accounts[name] = account

    def _attempts(self, submission: Submission, alone: Isolated) -> tuple[tuple[int, ...], str]:
        """Iterations of each attempt, and how the job will end."""
        spec, failures = submission.spec, self._job_failures
        if failures is None:
            return (spec.iterations,), "passed"
        whole_s = spec.iterations * alone.iteration_s
        fate = fate_of(spec.name, submission.gpus, whole_s, self._seed, failures.retries)
        fate = with_prerun(fate, alone.iteration_s) if failures.prerun else fate
        fate = without_repeats(fate) if failures.blacklist else fate
        fate = fate if failures.early_stop_at is None else ended_early(fate, failures.early_stop_at)
        return tuple(max(1, round(each / alone.iteration_s)) for each in fate.attempts), fate.status

    @staticmethod
    def _asks(account: _Account) -> Waiting:
        """What the job asks of the manager; nobody expects it to fail."""
        submission, alone = account.submission, account.alone
        spec = submission.spec
        whole_s = spec.iterations * alone.iteration_s
        return Waiting(
            spec.name,
            submission.gpus,
            spec.start_s,
            whole_s,
            remaining_s=whole_s,
            compute_s=alone.compute_s,
            communication_s=alone.communication_s,
            virtual_cluster=submission.virtual_cluster,
            model=spec.model,
            min_gpus=submission.min_gpus,
            max_gpus=submission.max_gpus,
            opportunistic=submission.opportunistic,
        )

    def _alone(self, spec: JobSpec, gpus: int) -> Isolated:
        """An iteration alone, on GPUs that lie together."""
        job = build_job(spec, self._fabric.gpus[: max(1, gpus)], self._fabric, PortBook(0))
        return isolated(job, self._fabric)

    def _carry_out(self, action: Action, this: _Round) -> None:
        match action:
            case Start() | Resize() | Migrate():
                self._put(action.job, action.gpus, action.pause_s, this)
            case Pack():
                for name in action.jobs:
                    if self._accounts[name].gpus != action.gpus:  # otherwise it goes on where it is
                        self._put(name, action.gpus, action.pause_s, this)
            case Preempt():
                account = self._accounts[action.job]
                self._stop(account, this)
                account.preemptions += 1
                account.hold((), this.now_s)
            case _:
                pass  # hosts come and go, jobs are sent back: nobody's progress changes

    def _put(self, name: str, gpus: tuple[str, ...], pause_s: float, this: _Round) -> None:
        """Let a job go on with ``gpus``; endless pauses are of one that waits for the rest of what it asked for."""
        account = self._accounts[name]
        self._stop(account, this)
        account.moves += bool(account.gpus)
        account.hold(gpus, this.now_s)
        if pause_s < inf:
            account.stint = this.started[name] = self._stint(account, this.now_s + pause_s)

    @staticmethod
    def _stop(account: _Account, this: _Round) -> None:
        name = account.submission.spec.name
        if name in this.started:  # it has not begun yet
            del this.started[name]
            account.stints.pop()
        elif account.stint is not None:
            account.left = _left(account, this.made)
            this.stopped.append(account.stint.name)
        account.stint = None

    def _stint(self, account: _Account, begin_s: float) -> Job:
        spec = account.submission.spec
        number = len(account.stints) + 1
        name = spec.name if number == 1 else f"{spec.name}@{number}"
        account.stints.append(name)
        self._owner[name] = spec.name
        if account.first_s is None:
            account.first_s = account.since_s
        left = max(1, ceil(account.left / len(account.gpus) - 1e-9))
        wanted = replace(spec, name=name, start_s=begin_s, iterations=left)
        return build_job(wanted, account.gpus, self._fabric, self._ports)

    def _outcome(self, name: str, account: _Account, now_s: float) -> JobOutcome:
        open_s = (now_s - account.since_s) * bool(account.gpus)
        return JobOutcome(
            name,
            account.submission.gpus,
            account.submission.spec.start_s,
            account.first_s,
            account.end_s,
            account.alone_s,
            0.0,
            account.held_gpu_s + open_s * len(account.gpus),
            account.held_s + open_s,
            account.preemptions,
            account.moves,
            dict(self._ledger.waits(name)),
            account.status,
            1 + account.failed,
        )


def _left(account: _Account, made: Callable[[str], int]) -> float:
    """Iterations times GPUs that are left, those of the stint under way taken off."""
    if account.stint is None:
        return account.left
    return max(0.0, account.left - made(account.stint.name) * len(account.stint.gpus))
