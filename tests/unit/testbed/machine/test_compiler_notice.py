"""Without numba every command that computes says so in one line: how much longer, and the command that helps."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from testbed.cli.main import main
from testbed.machine.compiler_notice import LONGER, slow_experiments, slow_flow_engine

INSTALL = "pip install 'gpu-communication-testbed[fast]'"
SWEEP = "scenario: hello\nengine: flow\nseeds: [1]\nset: {sharing: [proportional, max-min]}\n"


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where numba is not installed, but for what is compiled already."""
    monkeypatch.setitem(sys.modules, "numba", None)


def notices(capsys: pytest.CaptureFixture[str]) -> list[str]:
    said = capsys.readouterr()
    return [line for line in (said.out + said.err).splitlines() if "numba" in line]


@pytest.mark.usefixtures("no_compiler")
def test_a_run_says_it_once_before_anything_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "hello", "--engine", "flow", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == (
        f"without numba the flow engine takes {LONGER['max-min']} as long (sharing: max-min); to install it: {INSTALL}"
    )
    assert not any("numba" in line for line in said[1:])


@pytest.mark.usefixtures("no_compiler")
def test_a_plan_of_the_flow_engine_says_it_and_one_of_an_emulation_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "hello", "--engine", "flow", "--set", "sharing=packets"]) == 0
    (line,) = notices(capsys)
    assert LONGER["packets"] in line and line.endswith(INSTALL)
    assert main(["plan", "hello"]) == 0
    assert notices(capsys) == []


@pytest.mark.usefixtures("no_compiler")
def test_a_sweep_says_it_once_for_all_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sweep.yaml").write_text(SWEEP, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "sweep.yaml"]) == 0
    (line,) = notices(capsys)
    assert LONGER["proportional"] in line
    assert main(["sweep", "sweep.yaml"]) == 0
    assert notices(capsys) == []  # all points are kept, nothing is computed


@pytest.mark.usefixtures("no_compiler")
def test_an_experiment_that_computes_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "philly-locality", "--out", str(tmp_path)]) == 0
    assert notices(capsys) == [slow_experiments()]


@pytest.mark.usefixtures("no_compiler")
def test_of_several_kinds_of_sharing_the_slowest_counts() -> None:
    assert "sharing: packets" in slow_flow_engine("max-min", "packets", "proportional")
    assert all(re.fullmatch(r"\d+ to \d+ times", times) for times in LONGER.values())


def test_with_the_compiler_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numba")
    assert slow_flow_engine("packets") == slow_experiments() == ""
    assert main(["plan", "hello", "--engine", "flow"]) == 0
    assert notices(capsys) == []
