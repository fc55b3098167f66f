"""Emulated runs that are kept and reused: one scenario under one scheduler with one seed.

A finished run is in ``OUT/runs/<scenario>/<scheduler>-seed<N>/`` with its whole run directory and a file
``kept.json``, written last. It is reused while its fingerprint is the same: everything that determines
the run (fabric, jobs, what is measured, levels, seed, scheduler and its options, the version) but the scale,
which is the machine's. The files of an interrupted run are removed when it is run again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from testbed.api import prepare, run_scenario
from testbed.errors import EXIT_FAILED, EXIT_NOT_BELIEVABLE, EXIT_OK, BadInputError, RunFailedError
from testbed.experiment.experiment import Experiment, Scale
from testbed.machine.distribution import package_version
from testbed.progress import Progress
from testbed.results.plain_names import plain_name
from testbed.results.record_json import experiment_to
from testbed.results.run_directory import RunDirectory

KEPT: Final = "kept.json"


@dataclass(frozen=True)
class Treatment:
    """A scheduler: its name in experiments, its entry in a scenario's ``schedulers:``, and ``more`` overrides."""

    name: str
    entry: str
    more: tuple[str, ...] = ()

    @property
    def overrides(self) -> tuple[str, ...]:
        """The override that makes it the only scheduler, and ``more``."""
        return (f"schedulers=[{self.entry}]", *self.more)


ECMP: Final = Treatment("ecmp", "ecmp")
CRUX: Final = Treatment("crux", "crux")
IDEAL: Final = Treatment("ideal", "ideal")
ECMP_ALONE: Final = Treatment("ecmp-alone", "{name: ideal, paths: ecmp}")


@dataclass(frozen=True)
class Task:
    """One run: a scenario under a treatment with a seed."""

    scenario: str
    treatment: Treatment
    seed: int

    def __str__(self) -> str:
        return f"{self.scenario}, {self.treatment.name}, seed {self.seed}"

    def experiment(self) -> Experiment:
        """The experiment that this run executes."""
        return prepare(self.scenario, overrides=self.treatment.overrides, seed=self.seed).experiments[0]


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run: its entry of ``summary.json``, why there is none, and its directory."""

    entry: Mapping[str, Any] | None
    problem: str = ""
    directory: Path | None = None

    @property
    def verdict(self) -> str:
        """The run's verdict, ``failed`` without one."""
        return str(self.entry["fidelity"]["verdict"]) if self.entry else "failed"

    def scale(self) -> Scale:
        """The scale of its packets; ``BadInputError`` if the directory does not say."""
        if self.directory is None:
            raise BadInputError(f"{self.problem}: a run that failed has no scale")
        return RunDirectory.open(self.directory).read_experiment().scale


@dataclass(frozen=True)
class Beside:
    """The runs that a run is compared with: all have one scale.

    ``scale_of`` is the directory of one that has been made; if there is none, ``experiments`` are all of them.
    """

    scale_of: Path | None = None
    experiments: tuple[Experiment, ...] = ()


Execute = Callable[[Task, Path, Beside], tuple[Path, Mapping[str, Any]]]


def emulate(task: Task, out: Path, beside: Beside) -> tuple[Path, Mapping[str, Any]]:
    """Run ``task`` on emulated packets; returns its run directory under ``out`` and its summary."""
    result = run_scenario(
        task.scenario,
        overrides=[*task.treatment.overrides, "checks=[]"],
        seed=task.seed,
        out=out,
        allow_degraded=True,
        scale_of=beside.scale_of,
        beside=beside.experiments,
    )
    return result.directory, result.summary


class Runs:
    """The runs kept under ``out``; missing ones are run by ``execute``. ``redo``: also those that are not ``ok``."""

    def __init__(self, out: Path, *, redo: bool = False, execute: Execute = emulate) -> None:
        self._out = out / "runs"
        self._redo = redo
        self._execute = execute

    def all(self, tasks: Sequence[Task], progress: Progress) -> dict[Task, RunOutcome]:
        """Return the outcome of every task; a run that fails is reported and does not stop the others."""
        found: dict[Task, RunOutcome] = {}
        for place, task in enumerate(tasks, 1):
            experiment = task.experiment()
            folder = self._out / experiment.name / f"{task.treatment.name}-seed{task.seed}"
            digest = fingerprint(experiment)
            kept = self._kept(folder, digest)
            progress.phase(f"run {place} of {len(tasks)}: {task}{', kept from before' if kept else ''}")
            found[task] = kept or self._run(task, folder, digest, _beside(task, tasks, found))
        return found

    def _kept(self, folder: Path, digest: str) -> RunOutcome | None:
        try:
            note = json.loads((folder / KEPT).read_text("utf-8"))
            if note["fingerprint"] != digest:
                return None
            directory = folder / plain_name(note["directory"], "the directory")
            found = RunOutcome(RunDirectory.open(directory).read_summary()["runs"][0], directory=directory)
        except (OSError, ValueError, KeyError, IndexError, TypeError, BadInputError):
            return None
        return None if self._redo and found.verdict != "ok" else found

    def _run(self, task: Task, folder: Path, digest: str, beside: Beside) -> RunOutcome:
        if folder.exists():
            shutil.rmtree(folder)
        try:
            directory, summary = self._execute(task, folder, beside)
        except RunFailedError as error:
            print(f"{task}: {error}", file=sys.stderr)
            return RunOutcome(None, f"{task}: {error}")
        note = {"fingerprint": digest, "directory": directory.name, "task": str(task)}
        RunDirectory(folder).write_json(KEPT, note)
        return RunOutcome(summary["runs"][0], directory=directory)


def _beside(task: Task, tasks: Sequence[Task], found: Mapping[Task, RunOutcome]) -> Beside:
    """What ``task`` is compared with among ``tasks``: those of its scenario. One seed shows what a treatment sends."""
    same = [other for other in tasks if other.scenario == task.scenario]
    for other in same:
        if other in found and found[other].directory is not None:
            return Beside(scale_of=found[other].directory)
    one_seed = {other.treatment.name: other for other in reversed(same)}
    return Beside(experiments=tuple(other.experiment() for other in one_seed.values()))


def exit_status(found: Iterable[RunOutcome]) -> int:
    """Return the exit status for these runs: failed runs first, then runs that are not ``ok``."""
    verdicts = {run.verdict for run in found}
    if "failed" in verdicts:
        return EXIT_FAILED
    return EXIT_OK if verdicts <= {"ok"} else EXIT_NOT_BELIEVABLE


def not_ok(wanted: Sequence[Task], found: Mapping[Task, RunOutcome]) -> str:
    """Name the runs that are not ``ok``; empty if there are none."""
    named = [
        f"{task.treatment.name} seed {task.seed} {found[task].verdict}"
        for task in wanted
        if found[task].verdict != "ok"
    ]
    return f"not ok: {', '.join(named)}" if named else ""


def fingerprint(experiment: Experiment) -> str:
    """Hash everything that determines a run except the scale."""
    document = {key: value for key, value in experiment_to(experiment).items() if key != "scale"}
    document |= {"scheduler": experiment.scheduler.name, "options": dict(experiment.scheduler.options)}
    text = json.dumps([package_version(), document], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
