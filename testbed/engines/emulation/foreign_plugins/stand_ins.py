"""What takes the place of a plug-in of another package in the run: the same interface, answered by its process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, get_args

from controller.decision import ClusterView, Decision, Event, Scheduler, StepEnded, StepStarted
from controller.schedulers import registry as schedulers
from testbed.engines.common.managed_jobs import JobChanges, JobsUnderManager, ManagedJobs
from testbed.engines.emulation.foreign_plugins.plugin_process import PluginProcess
from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from topologies.dataclass_json import decode, encode
from topologies.fabric import Fabric
from workloads.job import Job
from workloads.managers import registry as managers
from workloads.managers.account import JobOutcome


def scheduler_of(experiment: Experiment) -> Scheduler:
    """Return the scheduler that the run asks itself: ours is made here, another package's in a process of its own."""
    if experiment.scheduler.name in {each.name for each in schedulers.BUILT_IN}:
        return schedulers.create(experiment.scheduler.name, experiment.scheduler.options, experiment.seed)
    return SchedulerStandIn(experiment)


def managed_jobs_of(experiment: Experiment) -> JobsUnderManager | None:
    """Return the jobs under their manager, in a process of its own if a part of it is another package's."""
    managed = experiment.managed
    if managed is None:
        return None
    if managers.all_built_in(managed.queue, managed.policy, managed.placer, managed.capacity):
        return ManagedJobs(managed, experiment.fabric, experiment.seed)
    return ManagedJobsStandIn(experiment)


class SchedulerStandIn(Scheduler):
    """Asked at communication steps; at all other events the controller asks its own."""

    summary = "a scheduler in a process of its own"

    def __init__(self, experiment: Experiment) -> None:
        choice = experiment.scheduler
        self._process = PluginProcess("scheduler", f"scheduler {choice.label}")
        first = self._process.ask(name=choice.name, options=dict(choice.options), seed=experiment.seed)
        kinds = {kind.__name__: kind for kind in get_args(Event)}
        self.events = frozenset(kinds[name] for name in first["events"] if name in kinds)
        self.every_s = float(first["every_s"])
        self._fabric: Fabric | None = None
        self._jobs: Mapping[str, Job] | None = None
        if not self.events & {StepStarted, StepEnded}:
            self._process.close()

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the decision; the other process keeps fabric and jobs. ``RunFailedError`` if it fails."""
        assert isinstance(event, StepStarted | StepEnded)
        question: dict[str, Any] = {}
        if view.fabric is not self._fabric:
            self._fabric = view.fabric
            question |= {"fabric": encode(view.fabric), "levels": view.level_count, "seed": view.seed}
        if view.jobs is not self._jobs:
            self._jobs = view.jobs
            question["jobs"] = encode(view.jobs)
        begins = isinstance(event, StepStarted)
        answer = self._process.ask(
            **question, steps=encode(view.steps), time_s=view.time_s, begins=begins, job=event.job, phase=event.phase
        )
        try:
            return decode(Decision, answer["decision"], "decision")
        except (KeyError, ValueError) as error:
            raise RunFailedError(f"the scheduler's decision is not understood: {error}") from error

    def close(self) -> None:
        """End its process."""
        self._process.close()


class ManagedJobsStandIn:
    """As :class:`testbed.engines.common.managed_jobs.ManagedJobs`, which is in the other process."""

    def __init__(self, experiment: Experiment) -> None:
        self._process = PluginProcess("manager", "the cluster manager")
        self.stints: list[Job] = []
        first = self._process.ask(
            managed=encode(experiment.managed), fabric=encode(experiment.fabric), seed=experiment.seed
        )
        self.total = int(first["total"])
        self._keep(first)

    def _keep(self, answer: Mapping[str, Any]) -> None:
        self.unfinished = int(answer["unfinished"])
        self.refused = decode(dict[str, str], answer["refused"], "refused")
        self._next_s = inf if answer["next_s"] is None else float(answer["next_s"])

    def next_s(self) -> float:
        """The next time to decide even if no stint ends; infinite for never."""
        return self._next_s

    def ended(self, stint: str, now_s: float) -> None:
        """A stint has completed its iterations."""
        self._keep(self._process.ask(what="ended", stint=stint, now_s=now_s))

    def hosts_changed(self, now_s: float, leaving: Sequence[str], joining: Sequence[str]) -> None:
        """Hosts have failed, or are back."""
        told = {"leaving": list(leaving), "joining": list(joining)}
        self._keep(self._process.ask(what="hosts", now_s=now_s, **told))

    def decide(self, now_s: float, made: Callable[[str], int]) -> JobChanges:
        """Let the manager decide on all that has happened."""
        completed = {stint.name: made(stint.name) for stint in self.stints}
        answer = self._process.ask(what="decide", now_s=now_s, made=completed)
        self._keep(answer)
        changes = decode(JobChanges, answer["changes"], "changes")
        self.stints += changes.started
        return changes

    def outcomes(self, now_s: float) -> tuple[JobOutcome, ...]:
        """The outcome of each submitted job."""
        return decode(tuple[JobOutcome, ...], self._end(now_s)["outcomes"], "outcomes")

    def stints_of(self) -> dict[str, tuple[str, ...]]:
        """Job -> its stints, in order."""
        return decode(dict[str, tuple[str, ...]], self._end(0.0)["stints_of"], "stints")

    def _end(self, now_s: float) -> dict[str, Any]:
        return self._process.ask(what="outcomes", now_s=now_s)

    def close(self) -> None:
        """End its process."""
        self._process.close()
