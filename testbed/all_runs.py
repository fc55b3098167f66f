"""The runs of all schedulers of a scenario, written to the run's directory: one after the other, or side by side.

Side by side are those that take long and are computed: simulations at line rate, and rates of many messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from testbed.engines.common.isolated_runs import each_alone, isolates_jobs, side_by_side
from testbed.engines.flow.alone import with_alone
from testbed.experiment.capacity import carries
from testbed.experiment.experiment import Experiment
from testbed.experiment.scale_search import TooBusyError
from testbed.one_scale import OneScale
from testbed.progress import Progress
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory
from testbed.side_by_side import Tell, each_in_a_process, processes_for
from testbed.watch.messages import LIVE
from workloads.job import Job

if TYPE_CHECKING:
    from testbed.watch.watcher import Watcher


MANY_MESSAGES: Final = 20_000
"""In an iteration of all jobs: with fewer a run of the flow engine takes seconds."""


class AllRuns:
    """Runs each of ``experiments`` at one scale; ``jobs`` are all that there may be.

    ``reasons``: scheduler's label -> why its datapath forwards its packets.
    """

    def __init__(
        self,
        runs: OneScale,
        experiments: Sequence[Experiment],
        jobs: Sequence[Job],
        reasons: Mapping[str, str],
        progress: Progress,
        watcher: Watcher | None,
    ) -> None:
        self._runs, self._experiments, self._jobs, self._reasons = runs, experiments, jobs, reasons
        self._progress, self._watcher = progress, watcher

    def run(self, directory: RunDirectory) -> tuple[Experiment, list[RunRecord]]:
        """Return the first experiment as it was run, and the records; all begin again if one loads the machine much."""
        if (processes := self._processes()) > 1:
            return self._side_by_side(directory, processes)
        order = self._order()
        while True:
            try:
                done = {place: self._one(self._experiments[place], directory, self._shown) for place in order}
            except TooBusyError as error:
                self._progress.remark(self._runs.go_down(error, self._jobs))
            else:
                return done[0][0], [done[place][1] for place in range(len(done))]

    def _order(self) -> list[int]:
        """Places of experiments, as they are run: if the first measures the scale of all, it is the one that asks most.

        That is on the datapath that carries least, and of those the one whose busiest moment is busiest.
        """
        places = range(len(self._experiments))

        def asks(place: int) -> tuple[float, float]:
            experiment = self._experiments[place]
            needs = self._runs.needs(experiment.scheduler.label, experiment.datapath)
            return carries(experiment.datapath), -needs

        return sorted(places, key=asks) if self._runs.measured else list(places)

    def _processes(self) -> int:
        """How many runs may go on at a time."""
        at_line_rate = all(experiment.at_line_rate for experiment in self._experiments)
        messages = sum(len(phase.transfers) for job in self._jobs for phase in job.phases)
        many = self._runs.engine.name == "flow" and messages >= MANY_MESSAGES and self._watcher is None
        return processes_for(len(self._experiments)) if at_line_rate or many else 1

    def _side_by_side(self, directory: RunDirectory, processes: int) -> tuple[Experiment, list[RunRecord]]:
        labels = [experiment.scheduler.label for experiment in self._experiments]
        for label in labels:
            directory.folder(label)
        self._progress.phase(f"{', '.join(labels)}: {processes} at a time", len(labels))
        tasks = [partial(self._computed, experiment, directory) for experiment in self._experiments]
        records = each_in_a_process(tasks, processes, self._progress)
        return self._experiments[0], records

    def _computed(self, experiment: Experiment, directory: RunDirectory, tell: Tell) -> RunRecord:
        return self._one(experiment, directory, lambda _label: tell)[1]

    def _shown(self, label: str) -> Tell:
        return _Shower(self._progress, label, self._watcher)

    def _one(
        self, experiment: Experiment, directory: RunDirectory, tell: Callable[[str], Tell]
    ) -> tuple[Experiment, RunRecord]:
        scaled, record = self._run(experiment, directory, tell)
        directory.write_record(record, scaled)
        return scaled, record

    def _run(
        self, experiment: Experiment, directory: RunDirectory, tell: Callable[[str], Tell]
    ) -> tuple[Experiment, RunRecord]:
        """Run ``experiment``; ``tell`` of a label takes the messages of that run, or of one job's part of it."""
        label = experiment.scheduler.label
        folder = directory.folder(label)
        if isolates_jobs(experiment):
            parts = [self._part(part, folder, tell(f"{label}, {part.jobs[0].name}")) for part in each_alone(experiment)]
            scaled = replace(experiment, scale=parts[-1][0].scale)
            record = side_by_side([record for _, record in parts])
        else:
            scaled, record = self._part(experiment, folder, tell(label))
        if label in self._reasons:
            record = replace(record, environment={**record.environment, "datapath_reason": self._reasons[label]})
        return scaled, record

    def _part(self, experiment: Experiment, folder: Path, tell: Tell) -> tuple[Experiment, RunRecord]:
        record, scaled = self._runs.run(experiment, folder, tell)
        tell({"phase": "each job alone"})
        return scaled, with_alone(record, scaled)


class _Shower:
    """Turns an engine's messages into phases of the progress display, and samples into what is watched."""

    def __init__(self, progress: Progress, label: str, watcher: Watcher | None) -> None:
        self._progress = progress
        self._label = label
        self._watcher = watcher
        self._phase = ""

    def __call__(self, message: Mapping[str, Any]) -> None:
        phase = str(message["phase"])
        if phase == LIVE:
            if self._watcher is not None:
                self._watcher.show(message)
            return
        if phase != self._phase:
            self._phase = phase
            if self._watcher is not None:
                self._watcher.phase(self._label, phase)
            self._progress.phase(f"{self._label}: {phase}", message.get("total"))
        self._progress.advance_to(float(message.get("value", 0.0)), str(message.get("note", "")))
