"""Every manager on the scenario of arrivals, with rates computed in place of packets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.api import prepare, run_scenario
from testbed.errors import BadInputError
from testbed.progress import Progress
from testbed.reproduce.kept_runs import Beside, Task
from testbed.reproduce.managers.managers_on_packets import SCENARIO, reproduce, treatment
from testbed.reproduce.paper_experiment import Settings
from workloads.managers.catalogue import MANAGERS


def computed(task: Task, out: Path, beside: Beside) -> tuple[Path, Mapping[str, Any]]:
    result = run_scenario(task.scenario, engine="flow", overrides=task.treatment.overrides, seed=task.seed, out=out)
    return result.directory, result.summary


def test_every_manager_has_options_that_the_scenario_takes() -> None:
    for name in MANAGERS:
        assert prepare(SCENARIO, engine="flow", overrides=treatment(name).overrides).scenario.manager is not None


def test_a_row_has_both_engines_and_a_manager_that_preempts_does(tmp_path: Path) -> None:
    settings = Settings(cases=0, seeds=1, out=tmp_path, only=("srtf",))
    (row,) = reproduce(settings, Progress(quiet=True), computed)
    assert row.label == "srtf" and row.note == ""
    assert row.here["preemptions"] >= 1 and row.here["unfinished"] == 0
    assert row.here["jct_mean_s"] == row.here["jct_mean_s_flow"] > 0


def test_an_unknown_manager_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="--row borg: no such manager, expected one of: none, fifo"):
        reproduce(Settings(cases=0, out=tmp_path, only=("borg",)), Progress(quiet=True), computed)
