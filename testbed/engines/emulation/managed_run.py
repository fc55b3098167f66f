"""Managed jobs on the emulated cluster: asks the cluster manager as the run goes on, and lets stints come and go."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING

from testbed.engines.common.managed_jobs import ManagedJobs

if TYPE_CHECKING:
    from testbed.engines.emulation.cluster import Cluster
    from workloads.job import Job


class ManagedRun:
    """Carries out on ``cluster`` what the manager of ``jobs`` decides. Stops come before starts, one at a time."""

    def __init__(self, cluster: Cluster, jobs: ManagedJobs) -> None:
        self._cluster = cluster
        self._jobs = jobs
        self._happened = asyncio.Event()
        self._coming: dict[str, tuple[Job, asyncio.Task[None]]] = {}

    def wake(self) -> None:
        """A stint has made all its iterations."""
        self._happened.set()

    async def live(self) -> None:
        """Go on until every job has ended."""
        try:
            while self._jobs.unfinished:
                await self._end_finished()
                await self._change()
                await self._until_something()
        finally:
            for _, task in self._coming.values():
                task.cancel()

    async def _end_finished(self) -> None:
        for running in self._cluster.finished():
            await self._cluster.depart(running)
            self._jobs.ended(running.job.name, self._cluster.now())

    async def _change(self) -> None:
        changes = self._jobs.decide(self._cluster.now(), self._made)
        for name in changes.stopped:
            await self._stop(name)
        for job in changes.started:
            self._coming[job.name] = (job, asyncio.create_task(self._cluster.arrive_later(job)))

    async def _stop(self, name: str) -> None:
        """End a stint: the iteration under way is lost. One that is just being announced comes up first."""
        job, coming = self._coming.pop(name)
        if self._cluster.seconds_until(job.start_s) > 0.0:  # it still stands where it was stopped, or starts up
            coming.cancel()
            return
        await coming
        running = self._cluster.jobs[name]
        if not running.ended:
            running.ended = True
            await self._cluster.halt(job)
            await self._cluster.depart(running)

    def _made(self, name: str) -> int:
        running = self._cluster.jobs.get(name)
        return 0 if running is None else running.completed

    async def _until_something(self) -> None:
        """Wait for the end of a stint, for the next time that counts, or for one that comes up, or fails to."""
        self._happened.clear()
        if self._cluster.has_finished():
            return
        delay_s = self._cluster.seconds_until(self._jobs.next_s())
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
