"""``python -m testbed`` by whichever Python."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
START = ROOT / "testbed" / "__main__.py"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing in it but the start of the program."""
    (tmp_path / "testbed" / "cli").mkdir(parents=True)
    shutil.copy(START, tmp_path / "testbed")
    (tmp_path / "testbed" / "__init__.py").touch()
    (tmp_path / "testbed" / "cli" / "__init__.py").touch()
    (tmp_path / "testbed" / "cli" / "main.py").write_text(
        "import sys\ndef main():\n    print(sys.prefix, *sys.argv[1:])\n    return 7\n"
    )
    return tmp_path


def start(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-S", "-m", "testbed", *arguments], cwd=checkout, capture_output=True, text=True, check=False
    )


def test_without_an_environment_one_line_tells_what_to_do(checkout: Path) -> None:
    done = start(checkout, "doctor")
    assert done.returncode == 3
    assert done.stderr == (f"testbed: missing pydantic, yaml, numpy, rich: run 'make setup' in {checkout} first\n")


def test_it_goes_on_in_the_project_environment_with_the_same_arguments(checkout: Path) -> None:
    venv.create(checkout / ".venv", symlinks=True)
    library = next((checkout / ".venv" / "lib").glob("python3*/site-packages"))
    for name in ("pydantic", "yaml", "numpy", "rich"):
        (library / f"{name}.py").touch()
    done = start(checkout, "run", "a b.yaml")
    assert (done.returncode, done.stdout) == (7, f"{checkout}/.venv run a b.yaml\n")


@pytest.mark.skipif(not (ROOT / ".venv" / "pyvenv.cfg").exists(), reason="this checkout is not set up")
def test_the_systems_python_goes_on_in_the_environment_with_nothing_but_roots_path(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to("/usr/bin/python3")
    only = f"PATH=/usr/sbin:/usr/bin:/sbin:/bin:{tmp_path}"
    start = ["/usr/bin/env", "-i", only, "python", "-m", "testbed"]
    done = subprocess.run([*start, "validate", "clos96.yaml"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("clos96: ")


def test_it_does_not_import_from_the_current_directory(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("shared")
    (elsewhere / "resource.py").write_text("raise SystemExit('planted')\n")
    (checkout / "testbed" / "cli" / "main.py").write_text("import resource\ndef main():\n    return 7\n")
    done = subprocess.run(
        [sys.executable, "-m", "testbed"],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.parametrize("name", ["testbed/__main__.py", "testbed/__init__.py"])
def test_an_old_python_can_read_the_start_of_the_program(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text(), feature_version=(3, 4))
    newer_than_python_2 = (ast.JoinedStr, ast.AnnAssign, ast.Nonlocal, ast.YieldFrom, ast.AsyncFunctionDef, ast.Starred)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert not [node for node in ast.walk(tree) if isinstance(node, newer_than_python_2)]
    assert not [node.name for node in functions if node.returns or node.args.kwonlyargs]
    assert not [argument for node in functions for argument in node.args.args if argument.annotation]
