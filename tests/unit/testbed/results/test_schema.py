"""Run directories of schema version 1, as the testbed of then left them, can be reported and compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from testbed.api import run_scenario
from testbed.cli.main import main
from testbed.errors import BadInputError
from testbed.experiment.experiment import JobFailures
from testbed.experiment.failures import Failure
from testbed.metrics.summary import summary
from testbed.results.run_directory import RunDirectory
from testbed.results.schema import EXPERIMENT_KEYS

OLD = Path(__file__).parent / "old_run"
RUNS = ("managed", "placed")
"""Jobs under a manager, and jobs on GPUs that the scenario names; with every option whose key has changed."""


def old_run(name: str, folder: Path) -> Path:
    """A copy, for commands write into it."""
    return Path(shutil.copytree(OLD / name, folder / f"old-{name}"))


def as_written(name: str) -> dict[str, Any]:
    """The summary in the words of then."""
    document: dict[str, Any] = json.loads((OLD / name / "summary.json").read_text("utf-8"))
    return document


def numbers(value: object) -> object:
    """``value`` without its keys' names, in their order."""
    if isinstance(value, dict):
        return [numbers(item) for item in value.values()]
    return [numbers(item) for item in value] if isinstance(value, list) else value


def without_losses(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``runs`` without what was lost to contention: what a job loses alone stood there as lost to other jobs."""
    jobs = [[{key: job[key] for key in job if key != "loss"} for job in run["jobs"]] for run in runs]
    return [
        {key: run[key] for key in run if key != "loss"} | {"jobs": of_run}
        for run, of_run in zip(runs, jobs, strict=True)
    ]


def test_an_old_summary_does_not_say_what_was_lost_to_other_jobs() -> None:
    assert as_written("placed")["runs"][0]["loss"] is not None
    found = RunDirectory.open(OLD / "placed").read_summary()
    assert all(entry["loss"] is None for run in found["runs"] for entry in (run, *run["jobs"]))


def test_every_old_key_of_an_experiment_is_in_the_old_runs() -> None:
    texts = [(OLD / name / "experiment.json").read_text("utf-8") for name in RUNS]
    assert all(any(f'"{place[-1]}": ' in text for text in texts) for place in EXPERIMENT_KEYS)


def test_an_old_experiment_says_what_it_said() -> None:
    managed = RunDirectory.open(OLD / "managed").read_experiment()
    assert managed.managed is not None
    assert managed.managed.job_failures == JobFailures(2, early_stop_at=0.9)
    assert [(job.min_gpus, job.max_gpus) for job in managed.managed.submissions][:2] == [(2, 4), (None, None)]
    placed = RunDirectory.open(OLD / "placed").read_experiment()
    assert (placed.fabric.pcie_queues, placed.measure.time_limit_s) == ("emulated", 100.0)
    assert placed.failures == (Failure("tor0->agg1", 0.5, 1.0),)


@pytest.mark.parametrize("name", RUNS)
def test_an_old_summary_has_its_numbers_under_the_keys_of_today(name: str) -> None:
    directory, before = RunDirectory.open(OLD / name), as_written(name)
    found = directory.read_summary()
    today = summary(directory.read_experiment(), directory.read_records())
    assert before["schema_version"] == 1 and found["schema_version"] == today["schema_version"] == 2
    assert numbers(without_losses(found["runs"])) == numbers(without_losses(before["runs"]))
    # What is computed from the other files today has these keys too, and the same numbers but for rounding.
    jobs = [job for run in found["runs"] for job in run["jobs"]]
    assert all(
        set(old) <= set(new) for old, new in zip(jobs, (j for r in today["runs"] for j in r["jobs"]), strict=True)
    )
    assert [job["jct_s"] for run in found["runs"] for job in run["jobs"]] == pytest.approx(
        [job["jct_s"] for run in today["runs"] for job in run["jobs"]]
    )


@pytest.mark.parametrize("name", RUNS)
def test_an_old_run_is_reported(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = old_run(name, tmp_path)
    assert main(["report", str(path), "--plots"]) == 0
    page = (path / "report.html").read_text("utf-8")
    jobs = [job for run in as_written(name)["runs"] for job in run["jobs"]]
    assert all(job["name"] in page and f"{job['jct_s']:.1f}" in page for job in jobs)
    assert (path / "plots").is_dir() and capsys.readouterr().err == ""


@pytest.mark.parametrize("name", RUNS)
def test_an_old_run_is_compared_with_a_new_one(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = old_run(name, tmp_path)
    new = run_scenario(str(old / "scenario.yaml"), engine="flow", out=tmp_path).directory
    capsys.readouterr()
    assert main(["compare", str(old), str(new), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {(row["label"], row["scheduler"]): row for row in document["runs"]}
    for run in as_written(name)["runs"]:
        before, after = rows[old.name, run["scheduler"]], rows[new.name, run["scheduler"]]
        assert before["gpu_utilization"] == run["gpu_utilization"]
        assert before["jct_s"] == {job["name"]: job["jct_s"] for job in run["jobs"]}
        assert before.keys() == after.keys() and before["jct_s"].keys() == after["jct_s"].keys()
    assert [mean["runs"] for mean in document["means"]] == [2, 2]
    assert main(["compare", str(old), str(new), "--out", str(tmp_path / "plots")]) == 0


@pytest.mark.parametrize("file", ["summary.json", "experiment.json", "ecmp/run.json"])
def test_a_version_from_the_future_is_refused(file: str, tmp_path: Path) -> None:
    directory = RunDirectory(old_run("placed", tmp_path))
    document = {**directory.read_json(file), "schema_version": 3}
    directory.write_json(file, document)
    with pytest.raises(BadInputError, match=r"damaged \(schema_version 3\), expected"):
        summary(directory.read_experiment(), directory.read_records())
