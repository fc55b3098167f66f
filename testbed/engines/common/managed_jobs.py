"""Jobs under a cluster manager: which starts and stops when, in stints. Pure; engines carry it out.

A stint is a stretch of a job on one set of GPUs. For the network it is a job of its own: ``gpt``, then
``gpt@2``, .. with the iterations that are left. The iteration that a stop interrupts is lost, as with a checkpoint
after each iteration. On another number of GPUs what is left is divided over them: weak scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import Protocol

from testbed.errors import RunFailedError
from testbed.experiment.experiment import Managed, Submission
from testbed.results.record import ManagedRecord
from topologies.fabric import Fabric
from workloads.analysis import Isolated, isolated
from workloads.build import JobSpec, build_job
from workloads.connections import PortBook
from workloads.job import Job
from workloads.managers.account import Account, JobOutcome, JobStep, PutOn, TakeOff, carry_out
from workloads.managers.capacities.gpu_types import slowed
from workloads.managers.interfaces import CapacityChanged
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.manager import Manager
from workloads.managers.policies.ring_time import ring_of_more
from workloads.managers.registry import GROUPS, manager
from workloads.plugin_errors import PluginError
from workloads.traces.job_failures import ended_early, fate_of, with_prerun, without_repeats


@dataclass(frozen=True, slots=True)
class JobChanges:
    """What an engine does now: end the stints ``stopped``, then let those ``started`` arrive at their start."""

    stopped: tuple[str, ...] = ()
    started: tuple[Job, ...] = ()


@dataclass(kw_only=True, eq=False)
class _ManagedJob(Account):
    """A job's account, and what is still to run of it.

    ``planned``: iterations of each attempt, all but the last of which fail. ``left``: iterations times GPUs that are
    left of the attempt under way; ``stint``: the stretch of it under way.
    """

    submission: Submission
    alone: Isolated
    planned: tuple[int, ...]
    status: str
    left: float = 0.0
    stint: Job | None = None
    stints: list[str] = field(default_factory=list)

    @property
    def alone_s(self) -> float:
        """Seconds of the whole job, its failed attempts included, on the GPUs it asks for, alone."""
        return sum(self.planned) * self.alone.iteration_s

    def expected(self, left: float) -> float:
        """Iterations times GPUs until the end of the job that was submitted, which foresees no failure; ``left`` are
        those of the attempt."""
        of_attempt = self.planned[self.attempts - 1] * self.submission.gpus
        return max(0.0, self.submission.spec.iterations * self.submission.gpus - (of_attempt - left))

    def begin_attempt(self) -> None:
        """All of the attempt is left."""
        self.left = float(self.planned[self.attempts - 1] * self.submission.gpus)


@dataclass
class _Round:
    """The results of one round of decisions; ``made``: stint -> iterations that it has completed."""

    now_s: float
    made: Callable[[str], int]
    stopped: list[str] = field(default_factory=list)
    started: dict[str, Job] = field(default_factory=dict)


def manager_of(managed: Managed, seed: int) -> Manager:
    """Return the manager that ``managed`` names; ``ValueError``, one line, for an unknown part or option."""
    options = {point: managed.options.get(point, {}) for point in GROUPS}
    return manager(managed.placer, managed.queue, managed.policy, managed.capacity, options, seed)


class JobsUnderManager(Protocol):
    """What a run needs of the jobs under its manager: see :class:`ManagedJobs`."""

    stints: list[Job]

    @property
    def refused(self) -> Mapping[str, str]:
        """Jobs that can never start, each with the reason."""
        ...

    @property
    def unfinished(self) -> int:
        """Jobs that are still to come, to start or to end."""
        ...

    @property
    def total(self) -> int:
        """All jobs."""
        ...

    def next_s(self) -> float:
        """The next time to call :meth:`decide` even if no stint ends; infinite for never."""
        ...

    def ended(self, stint: str, now_s: float) -> None:
        """A stint has completed its iterations."""
        ...

    def hosts_changed(self, now_s: float, leaving: Sequence[str], joining: Sequence[str]) -> None:
        """Hosts have failed, or are back: jobs on those that leave start again elsewhere."""
        ...

    def decide(self, now_s: float, made: Callable[[str], int]) -> JobChanges:
        """Let the manager decide on all that has happened."""
        ...

    def outcomes(self, now_s: float) -> tuple[JobOutcome, ...]:
        """The outcome of each submitted job."""
        ...

    def stints_of(self) -> dict[str, tuple[str, ...]]:
        """Job -> its stints, in order."""
        ...


class ManagedJobs:
    """The jobs of a run under its manager. ``stints``: all that there have been."""

    def __init__(self, managed: Managed, fabric: Fabric, seed: int) -> None:
        """``ValueError``, one line, if the manager does not fit the fabric; ``JobError`` for a job that is wrong."""
        self._fabric = fabric
        self._ledger = Ledger(manager_of(managed, seed), fabric)
        self._coming = sorted(managed.submissions, key=lambda each: each.spec.start_s)
        self._ports = PortBook(seed, fabric)
        self._place = {each.spec.name: place for place, each in enumerate(managed.submissions)}
        self._job_failures, self._seed = managed.job_failures, seed
        self._jobs: dict[str, _ManagedJob] = {}
        self._known = {each.spec.name: self._alone(each.spec, each.gpus) for each in managed.submissions}
        self._rings = {
            each.spec.name: self._ring_of_more(each.spec, each.gpus)
            for each in managed.submissions
            if each.max_gpus is not None and self._known[each.spec.name].communication_s <= 0.0
        }
        self._owner: dict[str, str] = {}
        self.stints: list[Job] = []

    @property
    def refused(self) -> Mapping[str, str]:
        """Jobs that can never start, each with the reason."""
        return self._ledger.refused

    @property
    def unfinished(self) -> int:
        """Jobs that are still to come, to start or to end."""
        ended = sum(job.end_s is not None for job in self._jobs.values())
        return len(self._known) - ended - len(self.refused)

    @property
    def total(self) -> int:
        """All jobs."""
        return len(self._known)

    def next_s(self) -> float:
        """The next time to call :meth:`decide` even if no stint ends; infinite for never."""
        return min(self._coming[0].spec.start_s if self._coming else inf, self._ledger.next_s())

    def ended(self, stint: str, now_s: float) -> None:
        """A stint has completed its iterations: its job is done, or has failed and starts from the beginning."""
        job = self._jobs[self._owner[stint]]
        job.left, job.stint = 0.0, None
        self._ledger.end(job.name, now_s)
        if job.attempts == len(job.planned):
            job.end(now_s)
            return
        job.fail(now_s)
        job.begin_attempt()
        self._ledger.submit(replace(self._asks(job), waiting_since_s=now_s, attempts=job.attempts - 1))

    def hosts_changed(self, now_s: float, leaving: Sequence[str], joining: Sequence[str]) -> None:
        """Hosts have failed, or are back: jobs on those that leave start again elsewhere."""
        reason = "hosts have failed" if leaving else "hosts are back"
        self._ledger.hosts_changed(CapacityChanged(now_s, tuple(joining), tuple(leaving), reason=reason))

    def decide(self, now_s: float, made: Callable[[str], int]) -> JobChanges:
        """Let the manager decide on all that has happened; ``made``: stint -> iterations that it has completed.

        ``RunFailedError`` if a part asks for the impossible, ``PluginError`` if that part is of another package.
        """
        while self._coming and self._coming[0].spec.start_s <= now_s:
            self._submit(self._coming.pop(0))

        def remaining_s(name: str) -> float:
            job = self._jobs[name]
            return job.alone.iteration_s * job.expected(_left(job, made)) / job.submission.gpus

        try:
            actions = self._ledger.decide(now_s, remaining_s)
        except PluginError:
            raise
        except Exception as error:  # a part of another package may fail in any way
            said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise RunFailedError(f"the cluster manager failed: {' '.join(said.split())}") from error
        this = _Round(now_s, made)
        for action in actions:
            for step in carry_out(action, self._jobs, now_s):
                self._do(step, this)
        self.stints += this.started.values()
        return JobChanges(tuple(this.stopped), tuple(this.started.values()))

    def outcomes(self, now_s: float) -> tuple[JobOutcome, ...]:
        """The outcome of each submitted job; those that hold GPUs do so until ``now_s``."""
        return tuple(
            job.outcome(now_s, job.alone_s, self._ledger.waits(name), job.status) for name, job in self._jobs.items()
        )

    def stints_of(self) -> dict[str, tuple[str, ...]]:
        """Job -> its stints, in order."""
        return {name: tuple(job.stints) for name, job in self._jobs.items()}

    def _submit(self, submission: Submission) -> None:
        name, alone = submission.spec.name, self._known[submission.spec.name]
        planned, status = self._attempts(submission, alone)
        at_s = submission.spec.start_s
        job = _ManagedJob(
            name, submission.gpus, at_s, submission=submission, alone=alone, planned=planned, status=status
        )
        job.begin_attempt()
        if self._ledger.submit(self._asks(job)):
            self._jobs[name] = job

    def _attempts(self, submission: Submission, alone: Isolated) -> tuple[tuple[int, ...], str]:
        """Iterations of each attempt, and how the job will end."""
        spec, failures = submission.spec, self._job_failures
        if failures is None:
            return (spec.iterations,), "passed"
        whole_s = spec.iterations * alone.iteration_s
        fate = fate_of(str(self._place[spec.name]), submission.gpus, whole_s, self._seed, failures.retries)
        fate = with_prerun(fate, alone.iteration_s) if failures.prerun else fate
        fate = without_repeats(fate) if failures.blacklist else fate
        fate = fate if failures.early_stop_at is None else ended_early(fate, failures.early_stop_at)
        return tuple(max(1, round(each / alone.iteration_s)) for each in fate.attempts), fate.status

    def _asks(self, job: _ManagedJob) -> Waiting:
        """The job as the manager sees it, which does not foresee failures."""
        submission, alone = job.submission, job.alone
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
            ring=self._rings.get(spec.name),
            virtual_cluster=submission.virtual_cluster,
            model=spec.model,
            min_gpus=submission.min_gpus,
            max_gpus=submission.max_gpus,
            opportunistic=submission.opportunistic,
            priority=submission.priority,
            gpu_type=submission.gpu_type,
            draws_by=str(self._place[spec.name]),
        )

    def _ring_of_more(self, spec: JobSpec, gpus: int) -> tuple[int, float] | None:
        """What an elastic job that sends nothing would send on more GPUs."""
        return ring_of_more(gpus, len(self._fabric.gpus), lambda more: self._alone(spec, more).communication_s)

    def _alone(self, spec: JobSpec, gpus: int) -> Isolated:
        """An iteration alone, on GPUs that lie together."""
        job = build_job(spec, self._fabric.gpus[: max(1, gpus)], self._fabric, PortBook(0, self._fabric))
        return isolated(job, self._fabric)

    def _do(self, step: JobStep, this: _Round) -> None:
        match step:
            case TakeOff():
                self._stop(self._jobs[step.job], this)
            case PutOn() if step.pause_s < inf:  # an endless pause: the job waits for the rest of its GPUs
                job = self._jobs[step.job]
                job.begin(this.now_s)
                job.stint = this.started[step.job] = self._stint(job, this.now_s + step.pause_s)
            case _:
                pass  # stints on the same GPUs share them

    @staticmethod
    def _stop(job: _ManagedJob, this: _Round) -> None:
        if job.name in this.started:  # it has not begun yet
            del this.started[job.name]
            job.stints.pop()
        elif job.stint is not None:
            job.left = _left(job, this.made)
            this.stopped.append(job.stint.name)
        job.stint = None

    def _stint(self, job: _ManagedJob, begin_s: float) -> Job:
        spec = job.submission.spec
        number = len(job.stints) + 1
        name = spec.name if number == 1 else f"{spec.name}@{number}"
        job.stints.append(name)
        self._owner[name] = spec.name
        left = max(1, ceil(job.left / len(job.gpus) - 1e-9))
        wanted = replace(spec, name=name, start_s=begin_s, iterations=left)
        types = self._ledger.state.structure.gpu_types
        return slowed(build_job(wanted, job.gpus, self._fabric, self._ports), self._fabric, types)


def _left(job: _ManagedJob, made: Callable[[str], int]) -> float:
    """Iterations times GPUs that are left, those of the stint under way taken off."""
    if job.stint is None:
        return job.left
    return max(0.0, job.left - made(job.stint.name) * len(job.stint.gpus))


def record_of(managed: JobsUnderManager | None, now_s: float) -> ManagedRecord | None:
    """Return the outcome of the jobs by ``now_s``; None where there is no manager."""
    if managed is None:
        return None
    return ManagedRecord(tuple(managed.stints), managed.stints_of(), managed.outcomes(now_s), dict(managed.refused))


def progress_of(managed: JobsUnderManager) -> dict[str, int]:
    """How many of the jobs are done, as a message about progress has it."""
    return {"value": managed.total - managed.unfinished, "total": managed.total}
