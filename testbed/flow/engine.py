"""The flow-level engine: runs an experiment like the emulation, with rates computed instead of packets sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from testbed.engine.collect import iteration_rows, windows
from testbed.errors import RunFailedError
from testbed.experiment import UNSCALED, Experiment
from testbed.flow.cluster import FluidCluster
from testbed.managed.recording import progress_of, record_of, with_stints
from testbed.record import RunRecord

_TELL_EVERY: Final = 500
"""Events between messages about progress."""


class FlowEngine:
    """Computes; needs no root and no switch. Its verdict is always ``ok``: it is what it models."""

    name = "flow"

    def check(self) -> None:
        """Nothing is needed of the machine."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Runs beside each other do not disturb each other."""
        yield

    def run(self, experiment: Experiment, directory: Path, progress: Callable[[dict[str, Any]], None]) -> RunRecord:
        """Run ``experiment``. ``RunFailedError`` if its time limit comes before every job could be measured."""
        plain = replace(experiment, scale=UNSCALED)
        cluster = FluidCluster(plain)
        while not _enough(cluster, plain):
            if cluster.now > plain.measure.limit_s:
                _refuse_if_short(cluster, plain)
                break
            cluster.step()
            if cluster.events % _TELL_EVERY == 0:
                progress(_message(cluster, plain))
        cluster.flush_links()
        kept = record_of(cluster.managed, cluster.now)
        plain = with_stints(plain, kept)
        rows = iteration_rows(cluster.reports, plain, 0.0, [])
        return RunRecord(
            scheduler=plain.scheduler,
            engine=self.name,
            duration_s=cluster.now,
            windows=windows(rows, plain),
            iterations=rows,
            links=tuple(cluster.links),
            decisions=tuple(cluster.decisions),
            environment={"events": cluster.events},
            managed=kept,
        )


def _wanted(experiment: Experiment) -> int:
    return experiment.measure.warmup + experiment.measure.iterations


def _least(cluster: FluidCluster, experiment: Experiment) -> int:
    """Iterations of the job that has made the fewest; one that has ended has made enough."""
    if len(cluster.jobs) < len(experiment.jobs):
        return 0
    counts = [running.completed for running in cluster.jobs.values() if not running.ended]
    return min(counts, default=_wanted(experiment))


def _enough(cluster: FluidCluster, experiment: Experiment) -> bool:
    if cluster.managed is not None:
        return cluster.managed.unfinished == 0
    return _least(cluster, experiment) >= _wanted(experiment)


def _refuse_if_short(cluster: FluidCluster, experiment: Experiment) -> None:
    measure = experiment.measure
    for running in cluster.jobs.values() if cluster.managed is None else ():
        if running.completed <= measure.warmup + 1 and not running.ended:
            raise RunFailedError(
                f"job {running.job.name} made {running.completed} iterations in {measure.limit_s:g} s, "
                f"{_wanted(experiment)} were asked for: raise measure.limit"
            )


def _message(cluster: FluidCluster, experiment: Experiment) -> dict[str, Any]:
    if cluster.managed is not None:
        return {"phase": "compute", **progress_of(cluster.managed), "note": f"{cluster.now:.1f} s"}
    value = min(_least(cluster, experiment), _wanted(experiment))
    return {"phase": "compute", "value": value, "total": _wanted(experiment), "note": f"{cluster.now:.1f} s"}
