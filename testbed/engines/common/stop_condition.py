"""When a run has measured enough: each job's iterations, or every job that a cluster manager has to place. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from testbed.engines.common.iterations import HostIteration, late_shares, undisturbed_iterations
from testbed.engines.common.live_jobs import LiveJob
from testbed.engines.common.managed_jobs import JobsUnderManager, progress_of
from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.results.record import IterationRow

MAX_DISTURBED: Final = 0.02
"""Share of the iterations of managed jobs that neighbours of the machine may disturb, and of a job's time that late
pauses may add: completion times are moved by no more than that."""


class StopCondition(Protocol):
    """What a run goes on for. ``managed``: a manager places the jobs, and no iteration is repeated."""

    managed: bool

    def experiment(self) -> Experiment:
        """The experiment with the jobs that there have been so far."""
        ...

    def left(self) -> int:
        """How much is still to be done; 0 when the goal is reached."""
        ...

    def undisturbed(self, rows: Sequence[IterationRow], reports: Sequence[HostIteration]) -> bool:
        """Whether enough of what was measured, in ``rows`` made of ``reports``, was undisturbed."""
        ...

    def refuse_if_short(self) -> None:
        """``RunFailedError`` if the time limit leaves too little to say anything."""
        ...

    def progress(self) -> tuple[str, Mapping[str, Any]]:
        """The phase of the run, and how far it is."""
        ...


def stop_condition_of(
    experiment: Experiment, jobs: Mapping[str, LiveJob], managed: JobsUnderManager | None, now: Callable[[], float]
) -> StopCondition:
    """Return what a run of ``experiment`` goes on for; ``jobs`` are those that have arrived."""
    return EachJobsIterations(experiment, jobs) if managed is None else AllManagedJobs(experiment, managed, now)


class EachJobsIterations:
    """Every job makes the iterations that are to be measured, beyond its warm-up, undisturbed."""

    managed = False

    def __init__(self, experiment: Experiment, jobs: Mapping[str, LiveJob]) -> None:
        self._experiment, self._jobs = experiment, jobs
        self._wanted = experiment.measure.warmup + experiment.measure.iterations

    def experiment(self) -> Experiment:
        """As it was given."""
        return self._experiment

    def left(self) -> int:
        """Iterations that the slowest job still lacks."""
        if len(self._jobs) < len(self._experiment.jobs):
            return self._wanted
        lacking = (min(self._wanted, r.job.iterations) - r.completed for r in self._jobs.values() if not r.ended)
        return max(0, max(lacking, default=0))

    def undisturbed(self, rows: Sequence[IterationRow], reports: Sequence[HostIteration]) -> bool:
        """Whether every job has the iterations asked for, those in disturbed seconds not counted."""
        measure = self._experiment.measure
        counts = undisturbed_iterations(rows, measure.warmup)
        jobs = [running.job for running in self._jobs.values()]
        return all(counts.get(job.name, 0) >= min(measure.iterations, job.iterations - measure.warmup) for job in jobs)

    def refuse_if_short(self) -> None:
        """No job may have made hardly more than its warm-up."""
        measure = self._experiment.measure
        for running in self._jobs.values():
            if running.completed <= measure.warmup + 1 and not running.ended:
                raise RunFailedError(
                    f"job {running.job.name} made {running.completed} iterations in {measure.time_limit_s:g} s, "
                    f"{self._wanted} were asked for: raise measure.time_limit"
                )

    def progress(self) -> tuple[str, Mapping[str, Any]]:
        """Iterations of the slowest job."""
        jobs = self._jobs.values()
        slowest = min(jobs, key=lambda running: running.completed, default=None)
        warm = all(running.completed >= self._experiment.measure.warmup for running in jobs)
        note = "" if slowest is None else f"{slowest.job.name} {slowest.completed}/{self._wanted} iterations"
        values = {"value": self._wanted - self.left(), "total": self._wanted, "note": note}
        return "measure" if warm else "warm up", values


class AllManagedJobs:
    """Every job that the cluster manager has to place ends. Each iteration is made once: none can be replaced."""

    managed = True

    def __init__(self, experiment: Experiment, managed: JobsUnderManager, now: Callable[[], float]) -> None:
        self._experiment, self._managed, self._now = experiment, managed, now

    def experiment(self) -> Experiment:
        """With every stint as a job."""
        return replace(self._experiment, jobs=tuple(self._managed.stints))

    def left(self) -> int:
        """Jobs that have not ended."""
        return self._managed.unfinished

    def undisturbed(self, rows: Sequence[IterationRow], reports: Sequence[HostIteration]) -> bool:
        """Whether nearly all iterations were, and late pauses added next to nothing to any job."""
        few = sum(row.disturbed for row in rows) <= MAX_DISTURBED * len(rows)
        return few and all(share <= MAX_DISTURBED for share in late_shares(reports).values())

    def refuse_if_short(self) -> None:
        """Jobs that wait for ever are a result."""

    def progress(self) -> tuple[str, Mapping[str, Any]]:
        """Jobs that have ended."""
        return "measure", {**progress_of(self._managed), "note": f"{self._now():.0f} s"}
