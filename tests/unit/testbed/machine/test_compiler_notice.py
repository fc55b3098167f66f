"""Without numba every command that computes says so in one line: how much longer, and the command that helps."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.machine.compiler_notice import LONGER, PACKETS, slow_engine, slow_experiments, slow_flow_engine
from testbed.reproduce.command import say_if_slow
from testbed.reproduce.experiments import find

ROOT = Path(__file__).parents[4]
INSTALL = "pip install 'gpu-communication-testbed[fast]'"
SWEEP = "scenario: hello\nengine: flow\nseeds: [1]\nset: {sharing: [proportional, max-min]}\n"


def without_compiler(*arguments: str, cwd: Path) -> list[str]:
    """The lines that a command prints in a process without numba."""
    start = "import sys; sys.modules['numba'] = None; from testbed.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *arguments]
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=cwd, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (done.stderr + done.stdout).splitlines()


def notices(lines: list[str]) -> list[str]:
    return [line for line in lines if "numba" in line]


def test_a_run_says_it_once_before_anything_else(tmp_path: Path) -> None:
    said = without_compiler("run", "hello", "--engine", "flow", cwd=tmp_path)
    assert said[0] == (
        f"without numba the flow engine takes {LONGER['max-min']} as long (sharing: max-min); to install it: {INSTALL}"
    )
    assert len(notices(said)) == 1


def test_a_plan_of_the_flow_engine_says_it_and_one_of_an_emulation_does_not(tmp_path: Path) -> None:
    (line,) = notices(without_compiler("plan", "hello", "--engine", "simulation", cwd=tmp_path))
    assert PACKETS in line and line.endswith(INSTALL)
    assert notices(without_compiler("plan", "hello", cwd=tmp_path)) == []


def test_a_sweep_says_it_once_for_all_points_and_not_where_all_are_kept(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(SWEEP, "utf-8")
    (line,) = notices(without_compiler("sweep", "sweep.yaml", cwd=tmp_path))
    assert LONGER["proportional"] in line
    assert notices(without_compiler("sweep", "sweep.yaml", cwd=tmp_path)) == []


def test_experiments_that_compute_say_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    say_if_slow(find("crux-fig19"))
    say_if_slow(find("crux-fig23"))
    assert capsys.readouterr().err.splitlines() == [slow_experiments()] and INSTALL in slow_experiments()


def test_of_several_kinds_of_sharing_the_slowest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert "sharing: proportional" in slow_flow_engine("max-min", "proportional")
    assert all(re.fullmatch(r"\d+ to \d+ times", times) for times in LONGER.values())


def test_with_the_compiler_nothing_is_said() -> None:
    pytest.importorskip("numba")
    assert slow_flow_engine("proportional") == slow_engine("simulation", "") == slow_experiments() == ""
