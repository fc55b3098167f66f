"""Decisions that change with every communication step, sent straight to the senders.

Coflow schedulers decide again whenever a step of a job begins or ends. Switches are too slow for
that and are not asked: they trust the senders' marks. This module receives the workers' step events,
asks the scheduler, and sends the marks and rates that changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from controller.decision import (
    STEP_EVENTS,
    ClusterView,
    Decision,
    Scheduler,
    Step,
    StepEnded,
    StepStarted,
)
from testbed.engines.common.mark_log import MarkLog
from testbed.engines.common.worker_plan import hosts_of
from testbed.experiment.experiment import Experiment
from topologies.shaping import tos_of_level
from workloads.iteration.protocol import HostStep, Shaped, ShapeFlows
from workloads.job import Flow, Job

_UNLIMITED: Final = float("inf")


@dataclass
class _Under:
    """One step of a job that has begun on some hosts and ended on ``ended`` of them."""

    step: Step
    ended: set[str] = field(default_factory=set)


@dataclass
class _HostChanges:
    """What changes at the senders of a host: marks of jobs and flows, and rates."""

    job_tos: dict[str, int] = field(default_factory=dict)
    flow_tos: dict[str, int] = field(default_factory=dict)
    rates: dict[str, float | None] = field(default_factory=dict)


class StepCoordinator:
    """Follows the steps of all jobs; ``tell(host, command)`` reaches the workers.

    ``marks`` takes every mark with its time; ``delays`` are the seconds from a step's beginning or end
    on a host to the moment at which a sender had applied what followed from it.
    """

    def __init__(
        self,
        experiment: Experiment,
        scheduler: Scheduler,
        tell: Callable[[str, ShapeFlows], None],
        marks: MarkLog,
    ) -> None:
        self._experiment = experiment
        self._scheduler = scheduler
        self._tell = tell
        self._marks = marks
        self._jobs: dict[str, Job] = {}
        self._in_force = Decision()
        self._under: dict[tuple[str, int, int], _Under] = {}
        self._tos: dict[tuple[str, str], int] = {}
        self._rates: dict[str, float] = {}
        self._since = 0.0
        self.delays: list[float] = []
        self.origin = 0.0

    @staticmethod
    def wanted(scheduler: Scheduler) -> bool:
        """Whether ``scheduler`` decides again at communication steps."""
        return bool(STEP_EVENTS & scheduler.events)

    def set_jobs(self, jobs: Mapping[str, Job]) -> None:
        """Take note of the running jobs."""
        self._jobs = dict(jobs)
        for key in [key for key in self._under if key[0] not in self._jobs]:
            del self._under[key]

    def on_step(self, host: str, step: HostStep) -> None:
        """Handle the begin or end of a step on ``host``; decide, and send the senders what changes."""
        key = step.job, step.iteration, step.phase
        job = self._jobs.get(step.job)
        if job is None:
            return
        if step.what == "begin":
            if key in self._under:
                return
            self._under[key] = _Under(self._new_step(job, step.phase, step.at))
            self._decide(StepStarted(job.name, step.phase), step.at)
            return
        under = self._under.get(key)
        if under is None:
            return
        under.ended.add(host)
        if len(under.ended) == len(hosts_of(job, self._experiment.fabric)):
            del self._under[key]
            self._decide(StepEnded(job.name, step.phase), step.at)

    def on_shaped(self, shaped: Shaped) -> None:
        """Note how long it took until a sender had applied a change."""
        self.delays.append(shaped.at - shaped.caused_at)

    def _new_step(self, job: Job, phase: int, at: float) -> Step:
        sizes: dict[str, float] = {}
        for transfer in job.phases[phase].transfers:
            sizes[transfer.flow] = sizes.get(transfer.flow, 0.0) + transfer.bytes
        return Step(job.name, phase, self._undilated(at - self.origin), sizes)

    def _undilated(self, seconds: float) -> float:
        return seconds / self._experiment.scale.time

    def _decide(self, event: StepStarted | StepEnded, cause: float) -> None:
        self._progress(cause)
        view = ClusterView(
            self._experiment.fabric,
            self._jobs,
            self._experiment.levels,
            self._experiment.seed,
            self._in_force,
            steps={under.step.job: under.step for under in self._under.values()},
            time_s=self._undilated(cause - self.origin),
        )
        decision = self._in_force = self._scheduler.decide(view, event)
        for host, command in self._changes(decision, cause):
            self._tell(host, command)

    def _progress(self, now: float) -> None:
        """Book what the rates in force have sent since the last decision: no sender reports bytes in between."""
        seconds = self._undilated(max(0.0, now - self._since))
        self._since = now
        for under in self._under.values():
            left = {
                flow: max(0.0, size - self._rates.get(flow, 0.0) * seconds / 8)
                for flow, size in under.step.remaining.items()
            }
            under.step = replace(under.step, remaining=left)

    def _changes(self, decision: Decision, cause: float) -> list[tuple[str, ShapeFlows]]:
        """The commands, a host each, that bring the senders from what they have to ``decision``."""
        changes: dict[str, _HostChanges] = {}

        def of(host: str) -> _HostChanges:
            return changes.setdefault(host, _HostChanges())

        for job in self._jobs.values():
            self._change_levels(job, decision, of)
            for flow in job.flows:
                self._change_rate(flow, decision, of)
        return [
            (host, ShapeFlows(cause, change.job_tos, change.flow_tos, change.rates)) for host, change in changes.items()
        ]

    def _change_levels(self, job: Job, decision: Decision, of: Callable[[str], _HostChanges]) -> None:
        """Levels of a job by its name; flows with a level of their own are named one by one."""
        if not decision.levels:
            return
        lowest, levels = self._experiment.levels - 1, self._experiment.levels
        ports = self._experiment.fabric.ports
        tos = tos_of_level(decision.levels.get(job.name, lowest), levels)
        for host in hosts_of(job, self._experiment.fabric):
            if self._tos.get((host, job.name)) != tos:
                self._tos[host, job.name] = tos
                of(host).job_tos[job.name] = tos
        now = time.monotonic()
        for flow in job.flows:
            self._marks.set(flow.id, now, [tos_of_level(decision.level_of(flow, lowest), levels)])
            if flow.id in decision.levels:
                for host in (ports[flow.source].host, ports[flow.target].host):
                    of(host).flow_tos[flow.id] = tos_of_level(decision.levels[flow.id], levels)

    def _change_rate(self, flow: Flow, decision: Decision, of: Callable[[str], _HostChanges]) -> None:
        rate = decision.rates.get(flow.id, _UNLIMITED)
        if self._rates.get(flow.id, _UNLIMITED) == rate:
            return
        self._rates[flow.id] = rate
        sent = None if rate == _UNLIMITED else self._experiment.scale.rate(rate) / 8
        of(self._experiment.fabric.ports[flow.source].host).rates[flow.id] = sent
