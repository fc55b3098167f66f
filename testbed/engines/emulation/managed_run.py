"""Managed jobs on the emulated cluster: asks the cluster manager as the run goes on, and lets stints come and go."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Protocol

from testbed.engines.common.live_jobs import LiveJob, LiveJobs
from testbed.engines.common.managed_jobs import JobsUnderManager
from workloads.job import Job


class StintCluster(Protocol):
    """What a managed run needs of the cluster on which stints come and go."""

    jobs: LiveJobs

    def now(self) -> float:
        """Undilated seconds since the run began."""
        ...

    def seconds_until(self, then_s: float) -> float:
        """Seconds of the machine's clock until ``then_s`` of the run."""
        ...

    async def arrive_later(self, job: Job) -> None:
        """Wait for the arrival of ``job``, make room for it, and let it begin."""
        ...

    async def halt(self, job: Job) -> None:
        """Let ``job`` send nothing more and report nothing more."""
        ...

    async def depart(self, live: LiveJob) -> None:
        """Close a job's connections, and carry out what follows for those that stay."""
        ...


class StintRunner:
    """Carries out on ``cluster`` what the manager of ``managed`` decides. Stops come before starts, one at a time."""

    def __init__(self, cluster: StintCluster, managed: JobsUnderManager) -> None:
        self._cluster = cluster
        self._managed = managed
        self._happened = asyncio.Event()
        self._coming: dict[str, tuple[Job, asyncio.Task[None]]] = {}

    def wake(self) -> None:
        """A stint has made all its iterations."""
        self._happened.set()

    async def live(self) -> None:
        """Go on until every job has ended."""
        try:
            while self._managed.unfinished:
                await self._end_finished()
                await self._change()
                await self._until_something()
        finally:
            for _, task in self._coming.values():
                task.cancel()

    async def _end_finished(self) -> None:
        for live in self._cluster.jobs.take_finished():
            await self._cluster.depart(live)
            self._managed.ended(live.job.name, self._cluster.now())

    async def _change(self) -> None:
        changes = self._managed.decide(self._cluster.now(), self._cluster.jobs.completed)
        for name in changes.stopped:
            await self._stop(name)
        for job in changes.started:
            self._coming[job.name] = (job, asyncio.create_task(self._cluster.arrive_later(job)))

    async def _stop(self, name: str) -> None:
        """End a stint: the iteration under way is lost. One that is just being announced comes up first."""
        job, coming = self._coming.pop(name)
        if self._cluster.seconds_until(job.start_s) > 0.0:  # it still waits where it was stopped, or starts up
            coming.cancel()
            return
        await coming
        live = self._cluster.jobs[name]
        if not live.ended:
            live.ended = True
            await self._cluster.halt(job)
            await self._cluster.depart(live)

    async def _until_something(self) -> None:
        """Wait for the end of a stint, for the next time that counts, or for one that comes up, or fails to."""
        self._happened.clear()
        if self._cluster.jobs.finished():
            return
        delay_s = self._cluster.seconds_until(self._managed.next_s())
        happened = asyncio.create_task(self._happened.wait())
        coming = [task for _, task in self._coming.values() if not task.done()]
        await asyncio.wait(
            [happened, *coming],
            timeout=None if delay_s == inf else max(0.0, delay_s),
            return_when=asyncio.FIRST_COMPLETED,
        )
        happened.cancel()
        for _, task in self._coming.values():
            if task.done():
                task.result()
