"""What a shell completes a line to, asked as a shell asks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from controller.schedulers import registry
from testbed import bundled_scenarios
from testbed.cli import completers
from testbed.cli.discovery.completion import SHELLS
from testbed.cli.main import VERBS, main
from testbed.reproduce.experiments import names as experiments

ROOT = Path(__file__).parents[4]
HEAVY = ("numpy", "pydantic", "matplotlib", "numba")
"""What takes long to import: nothing that a shell waits for may."""


def completions(line: str, directory: Path) -> list[str]:
    """What the shell would offer behind ``line``, typed in ``directory``; importing anything heavy fails."""
    answer = directory / ".answer"
    protocol = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    program = f"import sys; sys.modules.update(dict.fromkeys({HEAVY})); from testbed.cli.main import main; main()"
    command = [sys.executable, "-c", program]
    environment = {**os.environ, **protocol, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, env=environment, cwd=directory, check=True, capture_output=True)
    return [word.rstrip() for word in answer.read_text("utf-8").split("\n")]


def test_verbs_are_completed(tmp_path: Path) -> None:
    assert completions("testbed ", tmp_path) == list(VERBS)
    assert completions("testbed sch", tmp_path) == ["schedulers", "schema"]


@pytest.mark.parametrize("verb", VERBS)
def test_the_options_of_every_verb_are_completed(verb: str, tmp_path: Path) -> None:
    assert "--debug" in completions(f"testbed {verb} --", tmp_path)


def test_scenarios_are_bundled_ones_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / "club").mkdir()
    (tmp_path / "club" / "own.yaml").touch()
    (tmp_path / "cluster.yaml").touch()
    (tmp_path / "close.txt").touch()
    bundled = [name.removesuffix(".yaml") for name in bundled_scenarios.names() if name.startswith("cl")]
    assert completions("testbed run cl", tmp_path) == [*bundled, "club/", "cluster.yaml"]
    assert completions("testbed validate club/", tmp_path) == ["club/own.yaml"]


def test_values_of_options_are_completed(tmp_path: Path) -> None:
    assert completions("testbed run hello --engine ", tmp_path) == ["emulation", "simulation", "flow"]
    assert completions("testbed plan hello --scheduler crux-p", tmp_path) == ["crux-pa", "crux-ps-pa"]
    assert completions("testbed reproduce lina", tmp_path) == [name for name in experiments() if "lina" in name]


def test_directories_of_runs_are_completed(tmp_path: Path) -> None:
    for name in ("hello-1", "hello-2", "unfinished"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    for name in ("hello-1", "hello-2"):
        (tmp_path / "runs" / name / "summary.json").touch()
    (tmp_path / "runs" / "hello-2" / "report.html").touch()
    assert completions("testbed compare runs/h", tmp_path) == ["runs/hello-1", "runs/hello-2"]
    assert completions("testbed open h", tmp_path) == ["hello-2"]


def test_the_schedulers_that_are_completed_without_importing_them_are_those_of_the_registry() -> None:
    assert completers.built_in_schedulers() == tuple(sorted(each.name for each in registry.BUILT_IN))


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_is_one_that_the_shell_accepts(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "testbed" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(script, "utf-8")
    subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def test_the_help_text_imports_nothing_that_computes() -> None:
    program = f"import sys; sys.modules.update(dict.fromkeys({(*HEAVY, 'rich', 'yaml')}))\n"
    program += "from testbed.cli.main import main; raise SystemExit(main(['--help']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(verb in done.stdout for verb in VERBS)
