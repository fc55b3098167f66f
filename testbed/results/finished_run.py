"""Finished runs, read back from their directories."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.results.record import RunRecord
from testbed.results.run_directory import MANIFEST, RunDirectory, open_all


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: its ``directory``, its ``summary`` (``summary.json``) and ``manifest``, and what was recorded.

    ``records``: scheduler -> iterations, link samples and decisions, in the order in which the schedulers ran.
    ``changed``: files that are not as the run left them.
    """

    directory: Path
    summary: Mapping[str, Any]
    manifest: Mapping[str, Any]
    records: Mapping[str, RunRecord]
    changed: tuple[str, ...] = ()


def read_run(directory: Path) -> FinishedRun:
    """Return the run in ``directory``; ``BadInputError`` if it did not finish, or names the file that is damaged."""
    opened = RunDirectory.open(directory)
    records = {record.scheduler: record for record in opened.read_records()}
    return FinishedRun(directory, opened.read_summary(), opened.read_json(MANIFEST), records, opened.changed())


def summaries_of(directories: Sequence[Path]) -> Mapping[str, Mapping[str, Any]]:
    """Return the summaries of runs by the shortest names that tell them apart.

    ``BadInputError`` has a line for each directory that cannot be read.
    """
    opened = open_all(directories)
    names = [each.path.resolve().name for each in opened]
    if len(set(names)) < len(names):
        names = [os.path.normpath(each.path) for each in opened]
    return {name: each.read_summary() for name, each in zip(names, opened, strict=True)}
