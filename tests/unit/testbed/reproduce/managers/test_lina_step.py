"""Lina's step, with rates computed in place of packets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.api import run_scenario
from testbed.errors import BadInputError
from testbed.progress import Progress
from testbed.reproduce.kept_runs import Task
from testbed.reproduce.managers.lina_step import reproduce
from testbed.reproduce.paper_experiment import Settings


def computed(task: Task, out: Path) -> tuple[Path, Mapping[str, Any]]:
    overrides = [*task.treatment.overrides, "measure.iterations=3", "measure.warmup=1", "jobs.moe.jitter=0"]
    result = run_scenario(task.scenario, engine="flow", overrides=overrides, seed=task.seed, out=out)
    return result.directory, result.summary


def test_all_to_alls_first_are_never_slower_and_gradients_beside_are_faster_than_after(tmp_path: Path) -> None:
    rows = reproduce(Settings(cases=0, seeds=1, out=tmp_path), Progress(quiet=True), computed)
    assert [row.label for row in rows] == ["gradients in 16 bits", "in 32 bits", "in 4 bits"]
    assert rows[0].paper == {"faster": 1.73}
    for row in rows:
        assert row.here["first_s"] <= row.here["evenly_s"] + 1e-6
        assert row.here["first_s"] <= row.here["after_s"] + 1e-6
    assert rows[0].here["faster"] > 1.02


def test_rows_cannot_be_chosen(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="--row x: lina-step makes all its rows"):
        reproduce(Settings(cases=0, seeds=1, out=tmp_path, only=("x",)), Progress(quiet=True), computed)
