"""``testbed import``: what a file would run as, in a table and as JSON; what it leaves open is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.bundled_scenarios import folder
from testbed.cli.main import main
from tools.simai_workloads import files

WORKLOADS = folder() / "workloads"


def test_the_bundled_workloads_are_what_the_tool_writes() -> None:
    assert {path.name: path.read_text("utf-8") for path in WORKLOADS.iterdir()} == files()


def test_the_document_has_totals_and_phases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(WORKLOADS / "gpt-13b-tensor8.txt"), "--gpus", "64", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["groups"]["tensor"] == 8 and document["groups"]["data"] == 8
    assert {each["kind"]: each["count"] for each in document["collectives"]} == {
        "allreduce": 160,
        "reduce-scatter": 1,
        "all-gather": 1,
    }
    assert sum(phase["compute_s"] for phase in document["phases"]) == pytest.approx(document["compute_s"])


def test_the_table_says_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(WORKLOADS / "llama-7b-zero3.txt"), "--gpus", "16", "--group", "data"]) == 0
    shown = capsys.readouterr().out
    assert "left out: update times of 32 rows" in shown
    assert "groups of one rank became group data" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpt-13b-tensor8.txt"], ":1: the header has no all_gpus, expected gpus, the number of GPUs of the job\n"),
        (
            ["llama-7b-zero3.txt", "--gpus", "16"],
            ":3: ALLGATHER of 404750336 bytes of the forward is of the tensor group, which has one rank, "
            "expected group, the ranks that take part\n",
        ),
        (["none.txt"], ": cannot be read (No such file or directory), expected a SimAI workload\n"),
    ],
)
def test_what_is_left_open_is_asked_for(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = WORKLOADS / arguments[0]
    assert main(["import", str(file), *arguments[1:]]) == 2
    assert capsys.readouterr().err == f"{file}{message}"


def test_a_form_is_known_by_the_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trace.json").write_text("[]", "utf-8")
    assert main(["import", str(tmp_path / "trace.json")]) == 2
    assert "expected a trace of the PyTorch profiler" in capsys.readouterr().err
    assert main(["import", str(tmp_path)]) == 2
    assert "0 files *.et" in capsys.readouterr().err
