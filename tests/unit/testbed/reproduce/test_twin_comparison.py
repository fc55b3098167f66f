"""Rows of the twin: what two engines' summaries come to, and which rows there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.api import run_scenario
from testbed.errors import EXIT_NOT_BELIEVABLE, EXIT_OK, BadInputError
from testbed.experiment.experiment import Scale
from testbed.progress import Progress
from testbed.reproduce.kept_runs import Beside, Task, Treatment
from testbed.reproduce.paper_experiment import Settings
from testbed.reproduce.twin_comparison import iteration_errors, numbers, pairs, reproduce
from testbed.reproduce.twin_sensitivity import DRAWS, largest_range, moved_starts

SCALE = Scale(4000.0, 1.0)


def entry(utilization: float, **iterations: float | None) -> dict[str, Any]:
    jobs = [{"name": name, "iteration_s": {"mean": mean}} for name, mean in iterations.items()]
    return {"gpu_utilization": utilization, "jobs": jobs}


def test_points_are_those_between_the_engines_and_the_worst_job_counts() -> None:
    found = numbers([(entry(0.50, a=2.0, b=1.0), entry(0.51, a=2.02, b=0.96))])
    assert found["points"] == pytest.approx(1.0)
    assert found["iteration_error"] == pytest.approx(-0.04)


def test_a_job_without_an_iteration_says_nothing() -> None:
    assert iteration_errors([(entry(0.5, a=None, b=1.0), entry(0.5, a=1.0, b=1.1))]) == {"b": pytest.approx(0.1)}


def test_a_job_is_as_far_off_as_its_mean_over_the_seeds() -> None:
    one = (entry(0.5, a=1.0, b=2.0), entry(0.5, a=1.1, b=2.0))
    other = (entry(0.5, a=1.0, b=None), entry(0.5, a=0.94, b=1.0))
    made = [one, other]
    assert iteration_errors(made) == {"a": pytest.approx(0.02), "b": pytest.approx(0.0)}
    assert numbers(made)["iteration_error"] == pytest.approx(0.02)


def test_a_row_is_a_scenario_under_a_scheduler_and_unknown_ones_are_named() -> None:
    every, hello = ({treatment.name for _, treatment in pairs(only)} for only in ([], ["hello.yaml"]))
    assert hello == every - {"no-priorities", "crux-fair", "spray", "crux-spray"}
    assert {treatment.name for _, treatment in pairs(["dctcp"])} == hello - {"mltcp"}, "windows of several sizes"
    assert [treatment.name for _, treatment in pairs(["clos96-2to1.yaml/no-priorities"])] == ["no-priorities"]
    assert [treatment.name for _, treatment in pairs(["hello.yaml/crux"])] == ["crux"]
    assert pairs(["hello"]) == pairs(["hello.yaml"]) and pairs(["hello/crux"]) == pairs(["hello.yaml/crux"])
    assert "ecmp-switch" not in {treatment.name for _, treatment in pairs([])}
    with pytest.raises(BadInputError, match=r"--row helo\.yaml: no such row"):
        pairs(["helo.yaml"])


@pytest.mark.parametrize(("verdict", "status"), [("ok", EXIT_OK), ("degraded", EXIT_NOT_BELIEVABLE)])
def test_the_flow_engine_agrees_with_itself_and_a_degraded_run_proves_nothing(
    tmp_path: Path, verdict: str, status: int
) -> None:
    def compute(task: Task, out: Path, beside: Beside) -> tuple[Path, dict[str, Any]]:
        result = run_scenario(task.scenario, engine="simulation", overrides=task.treatment.overrides, out=out)
        result.summary["runs"][0]["fidelity"]["verdict"] = verdict
        return result.directory, result.summary

    settings = Settings(cases=0, seeds=1, only=("hello.yaml/crux",), out=tmp_path)
    with Progress(quiet=True) as progress:
        (row,) = reproduce(settings, progress, compute)
    assert row.here["points"] == 0.0 and row.here["iteration_error"] == 0.0
    for other in ("max_min", "proportional"):
        assert 0.0 < abs(row.here[f"{other}_points"]) < 5.0 and abs(row.here[f"{other}_iteration_error"]) < 0.2
    assert abs(row.here["moved_points"]) < 5.0 and 0.0 < row.here["moved_range"] < 0.2
    assert row.status == status


def test_a_run_without_an_iteration_that_counts_shows_no_numbers(tmp_path: Path) -> None:
    def disturbed(task: Task, out: Path, beside: Beside) -> tuple[Path, dict[str, Any]]:
        result = run_scenario(task.scenario, engine="flow", schedulers=["crux"], out=out)
        (run,) = result.summary["runs"]
        run["fidelity"]["verdict"] = "degraded"
        run["gpu_utilization"] = 0.0
        for job in run["jobs"]:
            job["iteration_s"]["mean"] = None
        return result.directory, result.summary

    settings = Settings(cases=0, seeds=1, only=("hello.yaml/crux",), out=tmp_path)
    with Progress(quiet=True) as progress:
        (row,) = reproduce(settings, progress, disturbed)
    assert (dict(row.here), row.note, row.status) == ({}, "degraded", EXIT_NOT_BELIEVABLE)


def test_the_range_of_moved_starts_is_that_of_the_job_that_hinges_most_on_them() -> None:
    entries = [entry(0.5, a=1.0, b=2.0), entry(0.5, a=1.02, b=2.2), entry(0.5, a=1.01, b=None)]
    assert largest_range(entries) == pytest.approx(0.1)


def test_starts_are_moved_by_draws_of_the_seed_and_the_same_again() -> None:
    task = Task("hello.yaml", Treatment("ecmp", "ecmp"), 1)
    first = moved_starts(task, SCALE)
    assert first == moved_starts(task, SCALE)
    assert len(first) == DRAWS and len({each["gpu_utilization"] for each in first}) > 1


def test_no_start_is_moved_where_a_manager_decides_it() -> None:
    assert moved_starts(Task("arrivals.yaml", Treatment("ecmp", "ecmp"), 1), SCALE) == []
