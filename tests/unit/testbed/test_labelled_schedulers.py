"""A run of one scheduler under several labels: every file, table and comparison goes by the label."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed import api
from testbed.api import RunResult, run_scenario
from testbed.cli import main
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.pytest_plugin import ScenarioRun
from testbed.report import html
from testbed.report.tables import render, schedulers_behind, tables
from testbed.results.run_directory import RunDirectory

SCENARIO = """\
fabric: {kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 2, tors: 2, aggregations: 2,
         port_rate: 200Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: big, model: crux-gpt, placement: [h0, h2]}
  - {name: small, model: crux-bert, placement: [h1, h3]}
schedulers:
  - {name: crux, label: no-priorities, priorities: false}
  - crux
measure: {iterations: 3, warmup: 1}
checks:
  - crux.gpu_utilization - no-priorities.gpu_utilization >= 1 point
  - crux.small.level == 0
"""
LABELS = ["no-priorities", "crux"]


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "labels.yaml"
    path.write_text(SCENARIO, "utf-8")
    return path


@pytest.fixture(scope="module")
def done(scenario: Path, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return run_scenario(scenario, engine="flow", out=tmp_path_factory.mktemp("runs"))


def test_checks_name_both_and_hold(done: RunResult) -> None:
    assert [check.passed for check in done.checks] == [True, True], done.checks


def test_the_summary_has_label_name_and_options(done: RunResult) -> None:
    said = [(run["scheduler"], run["scheduler_name"], run["options"]) for run in done.summary["runs"]]
    assert said == [("no-priorities", "crux", {"priorities": False}), ("crux", "crux", {})]
    assert list(done.summary["comparison"]) == ["baseline", "crux"]
    assert done.summary["comparison"]["baseline"] == "no-priorities"


def test_the_folders_are_named_by_label_and_read_back(done: RunResult) -> None:
    assert all((done.directory / label / "iterations.csv").is_file() for label in LABELS)
    directory = RunDirectory.open(done.directory)
    records = directory.read_records()
    assert [record.choice for record in records] == [
        SchedulerChoice("crux", {"priorities": False}, "no-priorities"),
        SchedulerChoice("crux"),
    ]
    html.build(directory, plots=True)
    assert (done.directory / "plots" / "link_load_no-priorities.svg").is_file()


def test_a_run_from_before_labels_has_the_name_as_its_label(done: RunResult) -> None:
    path = done.directory / "crux" / "run.json"
    text = path.read_text("utf-8")
    old = {key: value for key, value in json.loads(text).items() if key not in ("scheduler_name", "options")}
    path.write_text(json.dumps(old), "utf-8")
    try:
        assert RunDirectory.open(done.directory).read_record("crux").choice == SchedulerChoice("crux")
    finally:
        path.write_text(text, "utf-8")


def test_tables_and_comparisons_go_by_label(done: RunResult) -> None:
    assert "no-priorities" in render(tables(done.summary))
    assert schedulers_behind(done.summary) == ["no-priorities (crux, priorities: false)"]
    assert [row["scheduler"] for row in api.compare(done.directory)["runs"]] == LABELS


def test_a_test_finds_a_label_that_is_no_identifier_by_its_key(done: RunResult) -> None:
    run = ScenarioRun(done.summary, done.directory, done.status)
    assert run.crux.gpu_utilization > run["no-priorities"].gpu_utilization


def test_a_scheduler_on_the_command_line_is_that_of_the_label(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--engine", "flow", "--scheduler", "no-priorities", "--out", str(tmp_path), "--json"]
    assert main.main(["run", str(scenario), *options]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["scheduler"], run["options"]) == ("no-priorities", {"priorities": False})


def test_a_plan_has_a_decision_for_each_label(scenario: Path) -> None:
    planned = api.plan(scenario)["schedulers"]
    assert [(entry["scheduler"], entry["scheduler_name"]) for entry in planned] == [
        ("no-priorities", "crux"),
        ("crux", "crux"),
    ]
    assert planned[0]["options"] == {"priorities": False}


def test_a_sweep_runs_the_labelled_schedulers_of_its_scenario(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = tmp_path / "sweep.yaml"
    lines = [f"scenario: {scenario}", "engine: flow", "schedulers: [no-priorities, crux]", "seeds: [1]"]
    sweep.write_text("\n".join([*lines, "set: {measure.iterations: [2]}"]), "utf-8")
    main.main(["sweep", str(sweep), "--out", str(tmp_path / "out")])
    assert "no-priorities util %" in capsys.readouterr().out
