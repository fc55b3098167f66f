"""Emulated runs that are kept: one scenario under one scheduler with one seed, made once.

A finished run stands in ``OUT/runs/<scenario>/<scheduler>-seed<N>/`` with its whole run directory and a file
``kept.json``, written last. It is taken from there as long as its fingerprint is the same: everything that
decides the run (fabric, jobs, what is measured, levels, seed, scheduler and its options, the version) but the scale,
which is the machine's. What an interrupted run has left is removed when the run is made again.
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
from testbed.experiment.experiment import Experiment
from testbed.progress import Progress
from testbed.reproduce.documents import package_version
from testbed.results.record_json import experiment_to
from testbed.results.run_directory import RunDirectory

KEPT: Final = "kept.json"


@dataclass(frozen=True)
class Treatment:
    """A scheduler as experiments call it, and as a scenario's ``schedulers:`` has it; ``more`` overrides with it."""

    name: str
    entry: str
    more: tuple[str, ...] = ()

    @property
    def overrides(self) -> tuple[str, ...]:
        """The override that makes it the only scheduler, and the others."""
        return (f"schedulers=[{self.entry}]", *self.more)


ECMP: Final = Treatment("ecmp", "ecmp")
CRUX: Final = Treatment("crux", "crux")
IDEAL: Final = Treatment("ideal", "ideal")
ECMP_ALONE: Final = Treatment("ecmp-alone", "{name: ideal, paths: ecmp}")


@dataclass(frozen=True)
class Task:
    """One run that is wanted."""

    scenario: str
    treatment: Treatment
    seed: int

    def __str__(self) -> str:
        return f"{self.scenario}, {self.treatment.name}, seed {self.seed}"

    def experiment(self) -> Experiment:
        """What will be run."""
        return prepare(self.scenario, overrides=self.treatment.overrides, seed=self.seed).experiments[0]


@dataclass(frozen=True)
class Found:
    """What a run found: its entry of ``summary.json``; why there is none; and where it stands."""

    entry: Mapping[str, Any] | None
    problem: str = ""
    directory: Path | None = None

    @property
    def verdict(self) -> str:
        """The run's verdict, ``failed`` without one."""
        return str(self.entry["fidelity"]["verdict"]) if self.entry else "failed"


Execute = Callable[[Task, Path], tuple[Path, Mapping[str, Any]]]


def emulate(task: Task, out: Path) -> tuple[Path, Mapping[str, Any]]:
    """Run ``task`` on emulated packets; returns its run directory under ``out`` and its summary."""
    result = run_scenario(
        task.scenario, overrides=[*task.treatment.overrides, "checks=[]"], seed=task.seed, out=out, allow_degraded=True
    )
    return result.directory, result.summary


class Runs:
    """The runs kept under ``out``; what is not there is made with ``execute``. ``redo``: also what is not ``ok``."""

    def __init__(self, out: Path, *, redo: bool = False, execute: Execute = emulate) -> None:
        self._out = out / "runs"
        self._redo = redo
        self._execute = execute

    def all(self, tasks: Sequence[Task], progress: Progress) -> dict[Task, Found]:
        """Return what every task found; a run that fails is named and does not end the others."""
        found: dict[Task, Found] = {}
        for place, task in enumerate(tasks, 1):
            print_ = fingerprint(task.experiment())
            kept = self._kept(task, print_)
            progress.phase(f"run {place} of {len(tasks)}: {task}{', kept from before' if kept else ''}")
            found[task] = kept or self._make(task, print_)
        return found

    def _folder(self, task: Task) -> Path:
        return self._out / task.scenario / f"{task.treatment.name}-seed{task.seed}"

    def _kept(self, task: Task, print_: str) -> Found | None:
        folder = self._folder(task)
        try:
            note = json.loads((folder / KEPT).read_text("utf-8"))
            if note["fingerprint"] != print_:
                return None
            directory = folder / note["directory"]
            found = Found(RunDirectory.open(directory).read_summary()["runs"][0], directory=directory)
        except (OSError, ValueError, KeyError, IndexError, TypeError, BadInputError):
            return None
        return None if self._redo and found.verdict != "ok" else found

    def _make(self, task: Task, print_: str) -> Found:
        folder = self._folder(task)
        if folder.exists():
            shutil.rmtree(folder)
        try:
            directory, summary = self._execute(task, folder)
        except RunFailedError as error:
            print(f"{task}: {error}", file=sys.stderr)
            return Found(None, f"{task}: {error}")
        note = {"fingerprint": print_, "directory": directory.name, "task": str(task)}
        RunDirectory(folder).write_json(KEPT, note)
        return Found(summary["runs"][0], directory=directory)


def exit_status(found: Iterable[Found]) -> int:
    """Return the exit status for these runs: the failed weigh most, then those that are not ``ok``."""
    verdicts = {run.verdict for run in found}
    if "failed" in verdicts:
        return EXIT_FAILED
    return EXIT_OK if verdicts <= {"ok"} else EXIT_NOT_BELIEVABLE


def not_ok(wanted: Sequence[Task], found: Mapping[Task, Found]) -> str:
    """Name the runs that are not ``ok``; empty if there are none."""
    named = [
        f"{task.treatment.name} seed {task.seed} {found[task].verdict}"
        for task in wanted
        if found[task].verdict != "ok"
    ]
    return f"not ok: {', '.join(named)}" if named else ""


def fingerprint(experiment: Experiment) -> str:
    """Everything that decides a run but for the scale, as one hash."""
    document = {key: value for key, value in experiment_to(experiment).items() if key != "scale"}
    document |= {"scheduler": experiment.scheduler, "options": dict(experiment.scheduler_options)}
    text = json.dumps([package_version(), document], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
