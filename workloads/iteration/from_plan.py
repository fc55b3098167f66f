"""A job's program on one host, from the plan that its worker receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from workloads.iteration.compute_jitter import compute_time
from workloads.iteration.endpoints import ReceiverT, SenderT
from workloads.iteration.job_plan import JobPlan
from workloads.iteration.program import ComputeTimes, JobProgram
from workloads.iteration.protocol import HostStep, IterationEnded, PhaseTimes, StepEdge, Tell
from workloads.job import Job, Phase


class Timers(Protocol):
    """What a program needs from its event loop."""

    def clock(self) -> float:
        """Seconds that have passed."""
        ...

    def at(self, when: float, handler: Callable[[float], None]) -> None:
        """Call ``handler(lateness in seconds)`` at ``when``."""
        ...


def program_of(
    plan: JobPlan, loop: Timers, tell: Tell, blocked: Callable[[SenderT], None]
) -> JobProgram[SenderT, ReceiverT]:
    """Return the program that carries out ``plan`` and reports on it."""

    def report(iteration: int, phases: tuple[PhaseTimes, ...], late: float, waited: float) -> None:
        tell(IterationEnded(plan.name, iteration, phases, late, waited))

    def step(what: StepEdge, iteration: int, phase: int) -> None:
        tell(HostStep(plan.name, what, iteration, phase, loop.clock()))

    program: JobProgram[SenderT, ReceiverT] = JobProgram(
        plan.phases,
        _compute_times(plan),
        plan.slice_size,
        plan.departure,
        plan.iterations,
        loop.clock,
        loop.at,
        report,
        blocked,
        step if plan.steps else None,
    )
    program.iteration = plan.first_iteration
    return program


def _compute_times(plan: JobPlan) -> ComputeTimes:
    time_scale, seed, gpus = plan.time_scale, plan.seed, plan.gpus
    job = Job(
        name=plan.name,
        model="",
        gpus=gpus,
        phases=tuple(Phase(phase.compute_s, phase.overlap, "") for phase in plan.phases),
        flows=(),
        flops=0.0,
        iterations=0,
        jitter=plan.jitter,
        stragglers=plan.stragglers,
        draws=plan.draws,
    )

    def compute_times(iteration: int, phase: int) -> list[float]:
        requests = plan.phases[phase].requests
        factor = time_scale * (requests[iteration].compute if requests else 1.0)
        return [compute_time(job, gpu, iteration, phase, seed) * factor for gpu in gpus]

    return compute_times
