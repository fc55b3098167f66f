"""What makes no difference is said: schedulers that do the same, and settings that an engine does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.decision import Decision
from testbed.api import compare, run_scenario
from testbed.cli.main import main
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.report.no_effect import same_schedulers
from testbed.report.tables import beside_the_numbers
from testbed.results.record import DecisionRow, IterationRow, RunRecord


def test_a_scheduler_that_decides_the_same_does_the_same_and_it_is_said(tmp_path: Path) -> None:
    twice = ["schedulers=[crux, {name: crux, label: again}]", "checks=[]"]
    done = run_scenario("hello", engine="flow", overrides=twice, out=tmp_path)
    lines = done.summary["no_effect"]
    assert lines == ["again and crux have the same iterations to the last digit: the same decisions"]
    assert set(lines) <= set(beside_the_numbers(done.summary))


def test_where_nothing_can_contend_that_is_why(tmp_path: Path) -> None:
    done = run_scenario("hello", engine="flow", overrides=["jobs=[{name: one, model: bert, gpus: 8}]", "checks=[]"],
                        out=tmp_path)  # fmt: skip
    (line,) = done.summary["no_effect"]
    why = "nothing to schedule: communication is hidden behind compute"
    assert line == f"crux and ecmp have the same iterations to the last digit: {why}"


def test_decisions_that_differ_without_effect_are_named() -> None:
    rows = (IterationRow("a", "h0g0", 0, 0.0, 1.0, 0.5, 0.5, 0.0, 1.5),)
    records = [
        RunRecord(SchedulerChoice(name), "flow", 2.0, {}, rows, (), (DecisionRow(0.0, "arrival of a", decision),))
        for name, decision in (("ecmp", Decision(paths={"f": ("x",)})), ("crux", Decision({"f": ("y",)}, {"a": 1})))
    ]
    why = "other paths and levels, but no iteration was shorter or longer for them"
    assert same_schedulers(records) == [f"crux and ecmp have the same iterations to the last digit: {why}"]


def test_schedulers_that_differ_are_not_said_to_be_the_same(tmp_path: Path) -> None:
    assert run_scenario("hello", engine="flow", out=tmp_path).summary["no_effect"] == []


@pytest.mark.parametrize("engine", ["flow", "simulation"])
def test_a_transport_that_the_flow_engine_has_not_is_named(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--engine", engine, "--scheduler", "ecmp", "--set", "network.transport=dcqcn", "--set", "checks=[]"]
    if engine == "simulation":
        options += ["--set", "measure.iterations=1", "--set", "measure.warmup=0"]
    assert main(["run", "hello", *options, "--out", str(tmp_path)]) == 0
    line = "network.transport has no effect in the flow engine, which has no packets: expected --engine simulation"
    said = capsys.readouterr()
    assert (line in said.err) == (line in said.out) == (engine == "flow")


def test_a_setting_that_changes_nothing_is_named_by_the_comparison(tmp_path: Path) -> None:
    runs = [
        run_scenario("hello", engine="flow", schedulers=["ecmp"], overrides=[f"network.transport={name}", "checks=[]"],
                     out=tmp_path, seed=seed)
        for seed in (1, 2)
        for name in ("window", "dcqcn")
    ]  # fmt: skip
    lines = compare(*[run.directory for run in runs])["remarks"]
    assert "hello, flow: network.transport (window or dcqcn) makes no difference to ecmp, to the last digit" in lines


def test_a_setting_that_changes_something_is_not(tmp_path: Path) -> None:
    runs = [
        run_scenario("hello", engine="flow", overrides=[f"channels={count}", "checks=[]"], out=tmp_path).directory
        for count in (1, 2)
    ]
    assert not any("no difference" in line for line in compare(*runs)["remarks"])
