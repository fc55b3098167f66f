"""``testbed sweep`` with a runner that computes nothing: products, resuming, interrupts, tables, exit statuses."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import CannotRunError, RunFailedError

Swept = tuple[int, Any, str, str]
"""Status, the runner with what it was asked for, standard output, standard error."""


def test_every_combination_is_run_with_every_seed(sweep: Callable[..., Swept], tmp_path: Path) -> None:
    status, runner, _, _ = sweep()
    assert status == 0
    assert runner.asked == [
        f"jobs.small.jitter={jitter},measure.warmup={warmup},seed={seed}"
        for jitter in ("0.0", "0.1")
        for warmup in (1, 2)
        for seed in (1, 2)
    ]
    assert sorted(path.name for path in (tmp_path / "runs/sweep/two").iterdir()) == sorted(
        [*runner.asked, ".lock", "report.html", "sweep.csv", "sweep.json"]
    )


def test_the_table_has_mean_and_spread_of_every_scheduler(sweep: Callable[..., Swept]) -> None:
    _, _, shown, _ = sweep(ends={"jitter=0.1,measure.warmup=2,seed=1": "degraded"})
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "jitter warmup ecmp util % crux util % verdicts" in lines
    assert "0.0 1 51.5 +- 0.7 61.5 +- 0.7 ok" in lines
    assert "0.1 2 51.5 +- 0.7 61.5 +- 0.7 ecmp: 1 of 2 degraded; crux: 1 of 2 degraded" in lines


def test_the_document_is_printed_and_kept(sweep: Callable[..., Swept], tmp_path: Path) -> None:
    _, _, shown, _ = sweep("--json")
    document = json.loads(shown)
    assert document == json.loads((tmp_path / "runs/sweep/two/sweep.json").read_text())
    assert (len(document["rows"]), len(document["points"])) == (8, 8)
    row = document["rows"][1]
    assert row["set"] == {"jobs.small.jitter": 0.0, "measure.warmup": 1} and row["scheduler"] == "crux"
    assert row["gpu_utilization"] == pytest.approx(0.615) and row["gpu_utilization_points"] == 10.0
    assert (row["runs"], row["seeds"], row["verdicts"], row["mean_jct_s"]) == (2, [1, 2], {"ok": 2}, 15.0)


def test_the_csv_has_a_row_per_run_and_scheduler(sweep: Callable[..., Swept], tmp_path: Path) -> None:
    sweep(ends={"jitter=0.1,measure.warmup=2,seed=2": RunFailedError("the switch died")})
    with (tmp_path / "runs/sweep/two/sweep.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7 * 2 + 1
    assert (rows[0]["jobs.small.jitter"], rows[0]["seed"], rows[0]["scheduler"]) == ("0.0", "1", "ecmp")
    assert float(rows[0]["gpu_utilization"]) == pytest.approx(0.51)
    assert (rows[-1]["scheduler"], rows[-1]["problem"]) == ("", "the switch died")


def test_a_complete_point_is_not_run_again(sweep: Callable[..., Swept]) -> None:
    _, _, first, _ = sweep()
    status, runner, second, said = sweep()
    assert (status, runner.asked, second) == (0, [], first)
    assert "8 of 8 points are kept from before in runs/sweep/two" in said


def test_a_point_of_a_new_value_is_run_and_the_others_are_kept(sweep: Callable[..., Swept], tmp_path: Path) -> None:
    sweep()
    (tmp_path / "two.yaml").write_text((tmp_path / "two.yaml").read_text().replace("[1, 2]\nset", "[1, 2, 3]\nset"))
    _, runner, _, _ = sweep()
    assert [name.rpartition("=")[2] for name in runner.asked] == ["3"] * 4


def test_what_decides_a_point_makes_it_run_again_and_the_earlier_run_stays(
    sweep: Callable[..., Swept], tmp_path: Path
) -> None:
    sweep()
    (tmp_path / "two.yaml").write_text((tmp_path / "two.yaml").read_text().replace("[ecmp, crux]", "[crux, ecmp]"))
    _, runner, _, _ = sweep()
    assert len(runner.asked) == 8
    assert len(list((tmp_path / "runs/sweep/two" / runner.asked[0]).glob("hello-*"))) == 2


def test_redo_makes_those_again_that_are_not_believable(sweep: Callable[..., Swept]) -> None:
    status, _, _, _ = sweep(ends={"seed=2": "degraded"})
    assert status == 4
    assert sweep()[:1] + tuple(sweep()[1].asked) == (4,)
    status, runner, _, _ = sweep("--redo")
    assert (status, len(runner.asked)) == (0, 4) and all("seed=2" in name for name in runner.asked)


@pytest.mark.parametrize(
    ("ends", "options", "status"),
    [
        ({"seed=1": RunFailedError("no"), "seed=2": "degraded"}, (), 1),
        ({"seed=1": "check", "seed=2": "invalid"}, (), 4),
        ({"seed=1": "check", "seed=2": "invalid"}, ("--allow-degraded",), 5),
        ({"seed=1": "degraded"}, ("--allow-degraded",), 0),
        ({"seed=1": ZeroDivisionError("a bug")}, ("--allow-degraded",), 1),
    ],
)
def test_the_exit_status_is_the_worst_of_the_points(
    ends: dict[str, Any], options: tuple[str, ...], status: int, sweep: Callable[..., Swept]
) -> None:
    assert sweep(*options, ends=ends)[0] == status


def test_a_run_that_fails_is_named_does_not_end_the_others_and_is_tried_again(
    sweep: Callable[..., Swept], tmp_path: Path
) -> None:
    bad = "jobs.small.jitter=0.0,measure.warmup=1,seed=1"
    status, runner, shown, said = sweep(ends={bad: RunFailedError("the switch died")})
    assert (status, len(runner.asked)) == (1, 8)
    assert f"{bad}: the switch died" in said and "1 of 2 seeds failed" in shown
    assert [path for path in (tmp_path / "runs/sweep/two" / bad).iterdir() if not (path / "UNFINISHED").exists()] == []
    status, runner, _, _ = sweep()
    assert (status, runner.asked) == (0, [bad])
    assert len(list((tmp_path / "runs/sweep/two" / bad).glob("hello-*"))) == 1


def test_a_fault_of_the_program_leaves_its_traceback_with_the_point(
    sweep: Callable[..., Swept], tmp_path: Path
) -> None:
    bad = "jobs.small.jitter=0.1,measure.warmup=2,seed=2"
    _, _, _, said = sweep(ends={bad: ZeroDivisionError("a bug")})
    log = Path("runs/sweep/two") / bad / "error.log"
    assert f"{bad}: ZeroDivisionError: a bug; details in {log}" in said and "Traceback" not in said
    assert "Traceback" in (tmp_path / log).read_text()


def test_an_interrupt_keeps_what_is_finished_and_says_how_to_go_on(sweep: Callable[..., Swept], tmp_path: Path) -> None:
    ends = {"jitter=0.1": KeyboardInterrupt()}
    status, runner, shown, said = sweep("--out", "my points", "--allow-degraded", ends=ends)
    assert (status, len(runner.asked), shown) == (1, 5, "")
    again = "python -m testbed sweep two.yaml --out 'my points' --allow-degraded"
    assert said.splitlines()[-1] == f"testbed: interrupted; 4 of 8 points are kept in my points; go on with: {again}"
    document = json.loads((tmp_path / "my points/sweep.json").read_text())
    assert [point["problem"] for point in document["points"]] == [""] * 4 + ["not run"] * 4
    status, runner, _, _ = sweep("--out", "my points")
    assert (status, len(runner.asked)) == (0, 4)


def test_a_machine_that_cannot_go_on_ends_the_sweep_with_status_3(sweep: Callable[..., Swept]) -> None:
    status, runner, _, said = sweep(ends={"jitter=0.1": CannotRunError("another emulation is running")})
    assert (status, len(runner.asked)) == (3, 5)
    assert said.splitlines()[-2:] == [
        "jobs.small.jitter=0.1,measure.warmup=1,seed=1: another emulation is running",
        "4 of 8 points are kept in runs/sweep/two; go on with: python -m testbed sweep two.yaml",
    ]


def test_a_place_that_is_a_file_is_bad_input(sweep: Callable[..., Swept], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, runner, _, said = sweep("--out", "file")
    assert (status, runner.asked) == (2, [])
    assert said.splitlines()[-1].endswith("Not a directory, expected a directory to write to")


@pytest.mark.parametrize(
    ("options", "file", "status", "line"),
    [
        ((), "three.yaml", 2, "three.yaml: no such file, expected a sweep file"),
        (("--processes", "0"), "two.yaml", 2, "testbed sweep: argument --processes: '0' is not a whole number from 1"),
        ((), "gone.yaml", 2, "gone.yaml:1: helo.yaml: no such file, did you mean 'hello.yaml'?"),
    ],
)
def test_what_is_wrong_is_one_line_before_anything_runs(
    options: tuple[str, ...], file: str, status: int, line: str, sweep: Callable[..., Swept], tmp_path: Path
) -> None:
    (tmp_path / "gone.yaml").write_text("scenario: helo.yaml\n")
    found, runner, _, said = sweep(*options, file=file)
    assert (found, runner.asked) == (status, []) and not (tmp_path / "runs").exists()
    assert said.splitlines()[-1].startswith(line)


def test_without_seeds_and_parameters_there_is_one_point_with_the_scenarios_seed(
    sweep: Callable[..., Swept], tmp_path: Path
) -> None:
    (tmp_path / "one.yaml").write_text("scenario: hello\nengine: flow\n")
    _, runner, shown, _ = sweep(file="one.yaml")
    assert runner.asked == ["seed=1"] and "51.0" in shown


def test_ray_that_is_not_installed_is_one_line_and_status_3(
    sweep: Callable[..., Swept], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    status, _, _, said = sweep("--on", "ray")
    assert status == 3 and not (tmp_path / "runs").exists()
    assert said.splitlines()[-1] == "sweep --on ray needs ray: pip install 'gpu-communication-testbed[ray]'"
