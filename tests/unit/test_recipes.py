"""The recipes of docs/how-to/extend.md are true: followed to the letter in a copy, they work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("topologies", "workloads", "controller", "testbed", "benchmarks", "tests", "docs")
STEP = re.compile(
    r"^(?:File: `(?P<file>[^`]+)`|"
    r"(?P<how>Insert into|Replace in) `(?P<into>[^`]+)` (?:after|the line) `(?P<line>[^`]+)`(?: by)?:)"
    r"\n\n```\w*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
RUN = re.compile(r"^Run:\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def recipe(name: str) -> str:
    text = (ROOT / "docs" / "how-to" / "extend.md").read_text("utf-8")
    return text.partition(f"<!-- recipe: {name} -->")[2].partition("<!-- end of recipe -->")[0]


def follow(step: re.Match[str], copy: Path) -> None:
    """Make the file that a step describes, or change the one line that it names."""
    if step["file"]:
        assert not (copy / step["file"]).exists()
        (copy / step["file"]).write_text(step["text"], "utf-8")
        return
    lines = (copy / step["into"]).read_text("utf-8").split("\n")
    (found,) = (number for number, line in enumerate(lines) if line.strip() == step["line"])
    lines[found + (step["how"] == "Insert into") : found + 1] = step["text"].rstrip("\n").split("\n")
    (copy / step["into"]).write_text("\n".join(lines), "utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in COPIED:
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "setup.cfg", "README.md"):
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["scheduler", "fabric", "metric", "transport"])
def test_the_recipe_works_as_it_is_written(name: str, copy: Path) -> None:
    steps, (commands,) = list(STEP.finditer(recipe(name))), RUN.findall(recipe(name))
    for step in steps:
        follow(step, copy)
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    for command in commands.strip().splitlines():
        # The test that the recipe adds and the rules of the tree: what else is in its folder runs by itself.
        added = [step["file"] for step in steps if str(step["file"]).startswith("tests/")]
        given = (
            re.sub(r"tests/\S+", " ".join([*added, "tests/unit/test_architecture.py"]), command)
            if "pytest" in command
            else command
        )
        given = re.sub(r"^python", sys.executable, given)
        done = subprocess.run(["sh", "-c", given], cwd=copy, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    made = sorted((copy / "runs").glob("*/summary.json"))
    words = {"scheduler": "largest-first", "fabric": "one_switch", "metric": "idle_share", "transport": "simulation"}
    assert made and words[name] in made[-1].read_text("utf-8")
