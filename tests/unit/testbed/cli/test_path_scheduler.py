"""The example that chooses paths, installed as a user's package would be: its own tests pass, and its page shows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "docs" / "examples" / "least_loaded"
PAGE = ROOT / "docs" / "how-to" / "write-a-scheduler.md"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One in which the example is installed; pip builds from a copy, without the network."""
    source, target = tmp_path_factory.mktemp("source") / "least_loaded", tmp_path_factory.mktemp("installed")
    shutil.copytree(EXAMPLE, source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    offline = ["--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, *offline, "--target", target, source], check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(target), str(ROOT)))}


def test_its_own_tests_pass(environment: dict[str, str], tmp_path: Path) -> None:
    for name in ("test_least_loaded.py", "pairs.yaml"):
        shutil.copy(EXAMPLE / name, tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout


def test_the_scenario_holds_its_own_check(environment: dict[str, str], tmp_path: Path) -> None:
    arguments = ["run", str(EXAMPLE / "pairs.yaml"), "--engine", "flow", "--out", str(tmp_path), "--json"]
    command = [sys.executable, "-m", "testbed", *arguments]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize("name", ["least_loaded.py", "pyproject.toml", "pairs.yaml", "test_least_loaded.py"])
def test_the_page_shows_the_files_as_they_are(name: str) -> None:
    assert (EXAMPLE / name).read_text("utf-8") in PAGE.read_text("utf-8")
