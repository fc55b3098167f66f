"""Finished runs, read back from their directories."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.experiment.experiment import Experiment
from testbed.results import data_frames
from testbed.results.record import RunRecord
from testbed.results.run_directory import MANIFEST, RunDirectory

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: its ``directory``, its ``summary`` (``summary.json``) and ``manifest``, and what was recorded.

    ``records``: scheduler -> iterations, link samples and decisions, in the order in which the schedulers ran.
    ``changed``: files that are not as the run left them.

    The same as pandas data frames, whose columns :mod:`testbed.results.data_frames` describes: ``iterations``,
    ``messages``, ``links``, ``decisions``; the summary as ``schedulers`` and ``jobs``. They raise ``CannotRunError``
    where pandas is missing.
    """

    directory: Path
    summary: Mapping[str, Any]
    manifest: Mapping[str, Any]
    records: Mapping[str, RunRecord]
    changed: tuple[str, ...] = ()

    @cached_property
    def experiment(self) -> Experiment:
        """What the schedulers' runs share: fabric, jobs, scale; ``BadInputError`` if it is missing or damaged."""
        return RunDirectory.open(self.directory).read_experiment()

    @cached_property
    def iterations(self) -> DataFrame:
        """A row per scheduler, GPU and iteration."""
        return data_frames.iterations_frame(self.records.values())

    @cached_property
    def messages(self) -> DataFrame:
        """A row per scheduler and message; with its flow completion time and its slowdown."""
        return data_frames.messages_frame(self.records.values())

    @cached_property
    def links(self) -> DataFrame:
        """A row per scheduler, sample, link and level; with the link's capacity and load."""
        return data_frames.links_frame(self.records.values(), self.experiment)

    @cached_property
    def decisions(self) -> DataFrame:
        """A row per scheduler, decision and flow."""
        return data_frames.decisions_frame(self.records.values(), self.experiment)

    @cached_property
    def jobs(self) -> DataFrame:
        """A row per scheduler and job: the summary's numbers about jobs."""
        return data_frames.jobs_frame(self.summary)

    @cached_property
    def schedulers(self) -> DataFrame:
        """A row per scheduler: the summary's numbers about all jobs together."""
        return data_frames.schedulers_frame(self.summary)


def read_run(directory: Path) -> FinishedRun:
    """Return the run in ``directory``; ``BadInputError`` if it did not finish, or names the file that is damaged."""
    opened = RunDirectory.open(directory)
    records = {record.scheduler: record for record in opened.read_records()}
    return FinishedRun(directory, opened.read_summary(), opened.read_json(MANIFEST), records, opened.changed())


def labels_of(directories: Sequence[Path]) -> list[str]:
    """The shortest names that tell the directories apart: their own, or else their paths."""
    names = [each.resolve().name for each in directories]
    return names if len(set(names)) == len(names) else [os.path.normpath(each) for each in directories]
