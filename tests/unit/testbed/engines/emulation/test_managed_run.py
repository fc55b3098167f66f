"""Stints on a cluster: a stop before the beginning keeps a stint away, one after it halts it, the end takes it off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from testbed.api import prepare
from testbed.engines.common.live_jobs import LiveJob, LiveJobs
from testbed.engines.common.managed_jobs import JobChanges
from testbed.engines.emulation.managed_run import StintRunner
from workloads.iteration.protocol import IterationEnded
from workloads.job import Job

EXPERIMENT = prepare("hello").experiments[0]
FIRST, SECOND = EXPERIMENT.jobs


class FakeCluster:
    """Takes note of what it is asked; every stint begins ``begins_in`` seconds after its announcement."""

    def __init__(self, begins_in: float = 0.0) -> None:
        self.jobs = LiveJobs(EXPERIMENT)
        self.begins_in = begins_in
        self.asked: list[tuple[str, str]] = []

    def now(self) -> float:
        return 0.0

    def seconds_until(self, then_s: float) -> float:
        return self.begins_in if then_s == 0.0 else then_s

    async def arrive_later(self, job: Job) -> None:
        await asyncio.sleep(self.begins_in)
        self.asked.append(("arrive", job.name))
        self.jobs.arrive(job)
        self.jobs.begin(job.name, 0.0)

    async def halt(self, job: Job) -> None:
        self.asked.append(("halt", job.name))

    async def depart(self, live: LiveJob) -> None:
        self.asked.append(("depart", live.job.name))

    def finish(self, job: Job) -> None:
        for host in self.jobs[job.name].iterations:
            self.jobs.iteration_ended(host, IterationEnded(job.name, job.iterations - 1, (), 0.0, 0.0))


@dataclass
class Script:
    """A manager that decides ``steps``, one after the other, and waits for the end of ``running`` stints."""

    steps: list[Callable[[], JobChanges]]
    running: int

    @property
    def unfinished(self) -> int:
        return len(self.steps) + self.running

    def decide(self, _now: float, _made: Callable[[str], int]) -> JobChanges:
        return self.steps.pop(0)() if self.steps else JobChanges()

    def next_s(self) -> float:
        return 0.01

    def ended(self, _name: str, _now: float) -> None:
        self.running -= 1


def start(job: Job, *stopped: Job) -> Callable[[], JobChanges]:
    return lambda: JobChanges(tuple(each.name for each in stopped), (job,))


def finish(cluster: FakeCluster, job: Job) -> Callable[[], JobChanges]:
    """Meanwhile ``job`` makes its last iteration."""

    def meanwhile() -> JobChanges:
        cluster.finish(job)
        return JobChanges()

    return meanwhile


def carried_out(cluster: FakeCluster, script: Script) -> list[tuple[str, str]]:
    async def run() -> None:
        await asyncio.wait_for(StintRunner(cluster, cast(Any, script)).live(), 10.0)

    asyncio.run(run())
    return cluster.asked


def test_a_stint_that_has_made_its_iterations_departs_and_is_reported() -> None:
    cluster = FakeCluster()
    script = Script([start(FIRST), finish(cluster, FIRST)], running=1)
    assert carried_out(cluster, script) == [("arrive", FIRST.name), ("depart", FIRST.name)]
    assert script.running == 0


def test_a_stint_that_is_stopped_is_halted_before_it_departs_and_before_another_starts() -> None:
    cluster = FakeCluster()
    script = Script([start(FIRST), start(SECOND, FIRST), finish(cluster, SECOND)], running=1)
    assert carried_out(cluster, script) == [
        ("arrive", FIRST.name),
        ("halt", FIRST.name),
        ("depart", FIRST.name),
        ("arrive", SECOND.name),
        ("depart", SECOND.name),
    ]


def test_a_stint_that_is_stopped_before_it_begins_never_arrives() -> None:
    cluster = FakeCluster(begins_in=5.0)
    script = Script([start(FIRST), lambda: JobChanges((FIRST.name,))], running=0)
    assert carried_out(cluster, script) == []
