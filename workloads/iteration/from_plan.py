"""A job's program on one host, from the plan that its worker is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from workloads.iteration.byte_marks import ByteMarks
from workloads.iteration.compute_jitter import compute_time
from workloads.iteration.endpoints import ReceiverT, SenderT
from workloads.iteration.program import JobProgram, PhasePlan, StepReport
from workloads.job import Job, Phase, Straggler

Tell = Callable[[dict[str, Any]], None]


class Timers(Protocol):
    """What a program needs of the loop it runs in."""

    def clock(self) -> float:
        """Seconds that have passed."""
        ...

    def at(self, when: float, handler: Callable[[float], None]) -> None:
        """Call ``handler(lateness in seconds)`` at ``when``."""
        ...


def program_of(
    plan: dict[str, Any], loop: Timers, tell: Tell, blocked: Callable[[SenderT], None]
) -> JobProgram[SenderT, ReceiverT]:
    """Return the program that carries out ``plan`` and tells about it."""
    name = plan["name"]

    def report(iteration: int, rows: list[list[object]], late: float, waited: float) -> None:
        event = {"event": "iteration", "job": name, "iteration": iteration, "phases": rows}
        tell({**event, "late": late, "waited": waited})

    def step(what: str, iteration: int, phase: int) -> None:
        event = {"event": "step", "job": name, "what": what, "iteration": iteration, "phase": phase}
        tell({**event, "at": loop.clock()})

    told: StepReport | None = step if plan["steps"] else None
    return JobProgram(
        _phases(plan),
        _compute_times(plan),
        plan["slice"],
        plan["departure"],
        plan["iterations"],
        loop.clock,
        loop.at,
        report,
        blocked,
        told,
    )


def _phases(plan: dict[str, Any]) -> tuple[PhasePlan, ...]:
    return tuple(
        PhasePlan(
            overlap=phase["overlap"],
            out=tuple((flow, size, after, lead) for flow, size, after, lead in phase["out"]),
            into=tuple((flow, size) for flow, size in phase["in"]),
            inside_s=phase.get("inside_s", 0.0),
            background=phase.get("background", False),
        )
        for phase in plan["phases"]
    )


def _compute_times(plan: dict[str, Any]) -> Callable[[int, int], list[float]]:
    time_scale, seed, gpus = plan["time_scale"], plan["seed"], plan["gpus"]
    job = Job(
        name=plan["name"],
        model="",
        gpus=tuple(gpus),
        phases=tuple(Phase(phase["compute_s"], phase["overlap"], "") for phase in plan["phases"]),
        flows=(),
        flops=0.0,
        iterations=0,
        jitter=plan["jitter"],
        stragglers=tuple(Straggler(gpu, factor) for gpu, factor in plan["stragglers"]),
    )
    return lambda iteration, phase: [compute_time(job, gpu, iteration, phase, seed) * time_scale for gpu in gpus]


def byte_marks(given: dict[str, Any] | None) -> ByteMarks | None:
    """The marks of a plan or command; None for a fixed level."""
    return None if given is None else ByteMarks(given["left"], tuple(given["thresholds"]), tuple(given["marks"]))
