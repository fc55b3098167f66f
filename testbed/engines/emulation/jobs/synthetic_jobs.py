"""Synthetic jobs: what the workers of their hosts are told to open, begin, halt and close."""

from __future__ import annotations

from controller.decision import Decision
from testbed.engines.common.worker_plan import hosts_of, job_plans
from testbed.engines.emulation.workers import WorkerPool
from testbed.experiment.experiment import Experiment
from workloads.iteration.protocol import (
    Closed,
    CloseJob,
    Connected,
    ConnectJob,
    Halted,
    HaltJob,
    Listening,
    SetUpJob,
    StartJob,
)
from workloads.job import Job


class SyntheticJobs:
    """Tells the ``workers`` of jobs' hosts what to do, and waits until they have."""

    def __init__(self, experiment: Experiment, workers: WorkerPool) -> None:
        self._experiment = experiment
        self._workers = workers

    async def open(self, job: Job, decision: Decision, *, steps: bool, first: int = 0) -> None:
        """Open the connections of ``job``; with ``steps`` workers report when communication begins and ends.

        ``first``: the number of its first iteration.
        """
        hosts = self._hosts_of(job)
        for host, plan in job_plans(job, self._experiment, decision, steps=steps, first=first).items():
            self._workers.tell(host, SetUpJob(plan))
        await self._workers.expect(Listening, job.name, hosts)
        for host in hosts:
            self._workers.tell(host, ConnectJob(job.name))
        await self._workers.expect(Connected, job.name, hosts)

    def start(self, job: Job, at: float) -> None:
        """Let ``job`` begin ``at`` this time of the monotonic clock."""
        for host in self._hosts_of(job):
            self._workers.tell(host, StartJob(job.name, at))

    async def halt(self, job: Job) -> None:
        """Return when no host of ``job`` sends or reports anything more: then its connections can be closed."""
        hosts = self._hosts_of(job)
        for host in hosts:
            self._workers.tell(host, HaltJob(job.name))
        await self._workers.expect(Halted, job.name, hosts)

    async def close(self, job: Job, *, reset: bool = False) -> None:
        """Close the connections of ``job``; with ``reset`` at once, and what is unsent is dropped."""
        hosts = self._hosts_of(job)
        for host in hosts:
            self._workers.tell(host, CloseJob(job.name, reset))
        await self._workers.expect(Closed, job.name, hosts)

    def _hosts_of(self, job: Job) -> tuple[str, ...]:
        return hosts_of(job, self._experiment.fabric)
