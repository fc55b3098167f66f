"""How far a run of the flow engine is, so that there is a time left from the start. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from testbed.engines.common.live_jobs import LiveJob
from testbed.engines.common.stop_condition import StopCondition
from testbed.experiment.experiment import Experiment
from testbed.metrics.formats import time_text
from workloads.analysis import isolated

NEARLY: Final = 0.99
"""The largest share of a run that has not ended: contention may make the last iteration longer than those before."""


class FlowProgress:
    """Simulated time of a run beside the time at which it will end: what is computed takes about as long per second.

    A job's iterations are expected to take as long as they took, or before the first has ended as long as alone.
    ``jobs`` are those that have arrived.
    """

    def __init__(self, experiment: Experiment, jobs: Mapping[str, LiveJob], goal: StopCondition) -> None:
        self._experiment, self._jobs, self._goal = experiment, jobs, goal
        self._made: dict[str, tuple[int, float]] = {}
        """Job -> iterations that it had made, and when they were first seen."""

    def message(self, now_s: float) -> dict[str, Any]:
        """The message of the phase: ``value`` of ``total``, and the simulated time."""
        _, values = self._goal.progress()
        if not self._goal.managed:
            values = {"value": min(now_s / self._end_s(now_s), NEARLY) if now_s else 0.0, "total": 1.0}
        return {"phase": "compute", **values, "note": f"{time_text(now_s)} simulated"}

    def _end_s(self, now_s: float) -> float:
        """When all jobs will have made their iterations, at least ``now_s``; the time limit if that comes first."""
        measure = self._experiment.measure
        ends = [now_s]
        for job in self._experiment.jobs:
            wanted = min(measure.warmup + measure.iterations, job.iterations)
            live = self._jobs.get(job.name)
            made, seen_s = self._seen(job.name, 0 if live is None else live.completed, now_s)
            begin = job.start_s if live is None else live.began
            each_s = (seen_s - begin) / made if made else self._alone_s[job.name]
            ends.append(max(begin + wanted * each_s, now_s + max(0, wanted - made - 1) * each_s))
        return min(max(ends), max(now_s, measure.time_limit_s))

    def _seen(self, job: str, made: int, now_s: float) -> tuple[int, float]:
        if self._made.get(job, (0, 0.0))[0] != made:
            self._made[job] = made, now_s
        return self._made.get(job, (0, 0.0))

    @cached_property
    def _alone_s(self) -> dict[str, float]:
        """Job -> seconds of an iteration without other jobs."""
        return {job.name: isolated(job, self._experiment.fabric).iteration_s for job in self._experiment.jobs}
