"""The example of docs/examples, installed as a user's package would be, is found and decides."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "docs" / "examples" / "shortest_first"
FILES = ("pyproject.toml", "shortest_first.py")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that the example is installed in; pip builds from a copy, without the network."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for name in FILES:
        shutil.copy(EXAMPLE / name, source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    offline = ["--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, *offline, "--target", target, source], check=True, capture_output=True)
    return target


def said_by(installed: Path, *arguments: str) -> dict[str, Any]:
    path = os.pathsep.join((str(installed), str(ROOT)))
    command = [sys.executable, "-m", "testbed", *arguments, "--json"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, cwd=installed, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_installed_example_is_listed_with_its_package(installed: Path) -> None:
    found = {entry["name"]: entry for entry in said_by(installed, "schedulers")["schedulers"]}
    assert found["shortest-first"] == {
        "name": "shortest-first",
        "summary": "the job with the fewest bytes per iteration first",
        "decides": ["levels"],
        "events": ["JobArrived", "JobDeparted"],
        "source": "an example",
        "package": "shortest-first",
        "problem": "",
    }
    assert found["ecmp"]["package"] == ""


def test_the_installed_example_decides(installed: Path) -> None:
    plan = said_by(installed, "plan", "hello", "--scheduler", "shortest-first")
    transfer_s = {job["name"]: job["communication_s"] for job in plan["jobs"]}
    assert transfer_s["small"] < transfer_s["big"]
    [decided] = plan["schedulers"]
    assert {job["name"]: job["level"] for job in decided["jobs"]} == {"small": 0, "big": 1}


def test_the_page_shows_the_files_of_the_example_as_they_are() -> None:
    page = (ROOT / "docs" / "reference" / "schedulers.md").read_text("utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert [name for name in FILES if (EXAMPLE / name).read_text("utf-8") not in blocks] == []


def test_the_example_is_under_40_lines() -> None:
    assert len((EXAMPLE / "shortest_first.py").read_text("utf-8").splitlines()) < 40
