"""The runs to compare: directories of runs, and of sweeps, each with the parameters in which it differs.

Directories may come from anywhere. What their files say is text, and their names are: nothing is opened that lies
outside of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from testbed.errors import BadInputError
from testbed.report.comparison.inputs import as_text, inputs_of
from testbed.report.comparison.settings import differing
from testbed.results.finished_run import labels_of
from testbed.results.plain_names import plain_parts
from testbed.results.run_directory import RunDirectory
from testbed.results.run_inputs import OF_SCHEDULER, RunInputs, splitting_keys
from topologies.limits import one_line

SWEEP: Final = "sweep.json"
LONGEST_LABEL: Final = 40
Settings = Mapping[str, str]


@dataclass(frozen=True)
class ComparedRun:
    """A finished run by its ``label``; ``settings``: key of the scenario -> its value, where the runs differ.

    ``inputs``: all that the run was given.
    """

    label: str
    directory: RunDirectory
    summary: Mapping[str, Any]
    settings: Settings
    inputs: RunInputs = field(default_factory=RunInputs)

    @property
    def name(self) -> str:
        """The label, or the directory's own name where that is short: a point of a sweep is told by its settings."""
        return self.label if len(self.label) <= LONGEST_LABEL else one_line(self.directory.path.resolve().name)

    def settings_of(self, scheduler: str) -> list[str]:
        """The values of ``settings`` in their order, but nothing where they concern another scheduler."""
        own = f"{OF_SCHEDULER}{scheduler}"
        return [value if not key.startswith(OF_SCHEDULER) or key == own else "" for key, value in self.settings.items()]


@dataclass(frozen=True)
class ComparedRuns:
    """Runs side by side; ``missing``: a line for each point of a sweep that has no result."""

    runs: tuple[ComparedRun, ...]
    missing: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the scenario in which the runs differ."""
        return tuple(dict.fromkeys(key for run in self.runs for key in run.settings))


def is_sweep(directory: Path) -> bool:
    """Whether ``directory`` is the folder of a sweep."""
    return (directory / SWEEP).is_file() and not (directory / "summary.json").exists()


def collect(directories: Sequence[Path]) -> ComparedRuns:
    """Open runs, and the runs of sweeps; ``BadInputError`` has a line for each directory that cannot be read."""
    found: list[ComparedRun] = []
    missing: list[str] = []
    wrong: list[str] = []
    plain = [directory for directory in directories if not is_sweep(directory)]
    labels = dict(zip(plain, labels_of(plain), strict=True))
    for directory in directories:
        try:
            if directory in labels:
                found.append(_run(RunDirectory.open(directory), labels[directory]))
            else:
                points = _points(directory)
                found += points.runs
                missing += points.missing
        except BadInputError as error:
            wrong.append(str(error))
    if wrong:
        raise BadInputError("\n".join(wrong))
    keys = _differing(found)
    kept = (replace(run, settings={key: _value(run, key) for key in keys}) for run in found)
    return ComparedRuns(tuple(kept), tuple(missing))


def _value(run: ComparedRun, key: str) -> str:
    return run.settings.get(key, run.inputs.values.get(key, ""))


def _differing(runs: Sequence[ComparedRun]) -> tuple[str, ...]:
    """The keys in which runs of one scenario differ; two scenarios differ in so many that none would tell anything.

    Those of a sweep come first; others only where they tell apart what these do not.
    """
    by_scenario: dict[str, list[ComparedRun]] = {}
    for run in runs:
        by_scenario.setdefault(run.summary["scenario"], []).append(run)
    return tuple(dict.fromkeys(key for own in by_scenario.values() for key in _of_one_scenario(own)))


def _of_one_scenario(runs: Sequence[ComparedRun]) -> Iterator[str]:
    first = differing([run.settings for run in runs])
    yield from first
    whole = [{key: run.settings.get(key, "") for key in first} | run.inputs.shared() for run in runs]
    yield from splitting_keys(whole)
    names = dict.fromkeys(entry["scheduler"] for run in runs for entry in run.summary["runs"])
    for key in (f"{OF_SCHEDULER}{name}" for name in names):
        if len({run.inputs.values[key] for run in runs if key in run.inputs.values}) > 1:
            yield key


def _run(directory: RunDirectory, label: str, settings: Settings | None = None) -> ComparedRun:
    summary = directory.read_summary()
    inputs = inputs_of(directory, summary)
    return ComparedRun(label, directory, summary, inputs.shared() if settings is None else settings, inputs)


def _points(directory: Path) -> ComparedRuns:
    document = RunDirectory(directory).read_json(SWEEP)
    found, missing = [], []
    try:
        for point in document["points"]:
            name = str(point["point"])
            if point["directory"]:
                path = directory.joinpath(*plain_parts(point["directory"], "the directory"))
                settings = {str(key): as_text(value) for key, value in point["set"].items()}
                found.append(_run(RunDirectory.open(path), name, settings))
            else:
                missing.append(f"{name}: {point['problem']}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInputError(f"{directory / SWEEP}: damaged ({error}), expected the document of a sweep") from error
    return ComparedRuns(tuple(found), tuple(missing))


def link_to(run: ComparedRun, page: Path) -> str:
    """The address of the report of ``run`` from the folder ``page``; empty where there is no report."""
    report = run.directory.path / "report.html"
    if not report.is_file():
        return ""
    return address(os.path.relpath(report.resolve(), page.resolve()))


def address(relative: str) -> str:
    """A relative path as an address of a page beside it: never one of another scheme or host."""
    return "./" + quote(os.fsencode(relative))
