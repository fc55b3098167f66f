"""The engines that compute: the flow engine has rates in place of packets, the simulation has every packet."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from testbed.engines.common.iterations import iteration_rows, windows
from testbed.engines.common.managed_jobs import record_of
from testbed.engines.common.messages import message_rows
from testbed.engines.common.requests import with_requests
from testbed.engines.common.stop_condition import stop_condition_of
from testbed.engines.flow.cluster import FlowCluster
from testbed.engines.flow.networks.create import empty_path
from testbed.engines.flow.progress import FlowProgress
from testbed.errors import RunFailedError
from testbed.experiment.experiment import UNSCALED, Experiment
from testbed.experiment.scale_search import AS_GIVEN, ScaleSearch
from testbed.results.record import RunRecord
from workloads.plugin_errors import PluginError

_TELL_EVERY: Final = 50
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

    def run(
        self,
        experiment: Experiment,
        directory: Path,
        progress: Callable[[dict[str, Any]], None],
        search: ScaleSearch = AS_GIVEN,
    ) -> RunRecord:
        """Run ``experiment``; ``search`` is not used, since nothing depends on this machine.

        ``RunFailedError`` if its time limit comes before every job could be measured, or a plug-in fails: then its
        traceback goes to the log in ``directory``.
        """
        try:
            return self._run(experiment, progress)
        except PluginError as error:
            _log(error, directory / "testbed.log")
            raise RunFailedError(str(error)) from error

    def _run(self, experiment: Experiment, progress: Callable[[dict[str, Any]], None]) -> RunRecord:
        real = next((job.name for job in experiment.jobs if job.external is not None), None)
        if real is not None:
            raise RunFailedError(f"job {real} is of kind external, which only the emulation runs")
        plain = replace(experiment, scale=UNSCALED)
        cluster = FlowCluster(experiment)
        goal = stop_condition_of(plain, cluster.jobs, cluster.managed, cluster.clock)
        told = FlowProgress(plain, cluster.jobs, goal)
        progress(told.message(0.0))
        while goal.left():
            if cluster.now > plain.measure.time_limit_s:
                goal.refuse_if_short()
                break
            cluster.step()
            if cluster.events % _TELL_EVERY == 0:
                progress(told.message(cluster.now))
        cluster.flush_links()
        plain = goal.experiment()
        rows = iteration_rows(cluster.jobs.reports, plain, 0.0, [])
        record = RunRecord(
            choice=plain.scheduler,
            engine=self.name,
            duration_s=cluster.now,
            windows=windows(rows, plain),
            iterations=rows,
            messages=message_rows(cluster.jobs.reports, plain, 0.0, cluster.decisions, empty_path(experiment)),
            links=tuple(cluster.links),
            decisions=tuple(cluster.decisions),
            environment={"events": cluster.events, "network": cluster.counted(), **cluster.failures.record()},
            managed=record_of(cluster.managed, cluster.now),
        )
        return with_requests(record, cluster.jobs.reports, plain, 0.0)


class SimulationEngine(FlowEngine):
    """Simulates every packet, on the network that the experiment says."""

    name = "simulation"


def _log(error: PluginError, log: Path) -> None:
    """Append what the plug-in raised to the run's log, if it can be written: the run has failed all the same."""
    with suppress(OSError), log.open("a", encoding="utf-8", errors="backslashreplace") as file:
        traceback.print_exception(error, file=file)
