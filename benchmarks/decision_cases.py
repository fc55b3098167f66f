"""Jobs and events that the benchmarks of decisions share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from controller.decision import ClusterView, Event, JobArrived, JobDeparted, Scheduler, Step, StepEnded, StepStarted
from topologies.fabric import Fabric
from workloads.job import Job

SEED: Final = 1
GPUS_OF_JOBS: Final[Mapping[int, float]] = {
    1: 0.12,
    4: 0.08,
    8: 0.17,
    16: 0.32,
    32: 0.04,
    48: 0.13,
    64: 0.03,
    128: 0.05,
    256: 0.03,
    512: 0.03,
}
"""GPUs of a job -> share of jobs (Crux figure 4, steps of the curve at their upper end)."""
MODELS: Final = ("gpt", "bert", "resnet", "nmt", "crux-gpt", "crux-bert", "crux-resnet")


def follows_steps(scheduler: Scheduler) -> bool:
    """Whether the scheduler decides at every communication step."""
    return StepStarted in scheduler.events


def views(scheduler: Scheduler, fabric: Fabric, jobs: Sequence[Job]) -> Iterator[tuple[ClusterView, Event]]:
    """All jobs at first, then one leaves and comes back, and so on with the next; or its step, for those of steps."""
    running = {job.name: job for job in jobs}
    steps = {job.name: step for job in jobs if (step := _step(job)) is not None}
    everything = ClusterView(fabric, running, steps=steps if follows_steps(scheduler) else {})
    if not follows_steps(scheduler):
        yield everything, JobArrived(jobs[-1].name)
        while True:
            for job in jobs:
                rest = {name: other for name, other in running.items() if name != job.name}
                yield replace(everything, jobs=rest), JobDeparted(job.name)
                running = {**rest, job.name: job}
                yield replace(everything, jobs=running), JobArrived(job.name)
    yield everything, StepStarted(next(reversed(steps)), 0)
    while True:
        for name, step in steps.items():
            rest_steps = {other: held for other, held in steps.items() if other != name}
            yield replace(everything, steps=rest_steps), StepEnded(name, step.phase)
            yield replace(everything, steps={**rest_steps, name: step}), StepStarted(name, step.phase)


def _step(job: Job) -> Step | None:
    """The first communication of an iteration, nothing sent yet."""
    for number, phase in enumerate(job.phases):
        if phase.transfers:
            return Step(job.name, number, 0.0, {transfer.flow: transfer.bytes for transfer in phase.transfers})
    return None
