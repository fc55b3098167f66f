"""What ``testbed init`` writes runs as it is: the scenario, and the plug-ins once they are installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from testbed.cli.main import main

ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_scenario_is_right_and_runs_and_its_check_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "scenario"]) == 0
    expected = "my_scenario.yaml\nscenario.schema.json\nnext: testbed run my_scenario.yaml --engine flow\n"
    assert capsys.readouterr().out == expected
    assert main(["validate", "my_scenario.yaml"]) == 0
    assert main(["run", "my_scenario.yaml", "--engine", "flow"]) == 0
    assert "check passed" in capsys.readouterr().out


def test_an_editor_finds_the_schema_by_the_first_line_and_the_scenario_follows_it() -> None:
    assert main(["init", "scenario", "folder/own.yaml"]) == 0
    text = Path("folder/own.yaml").read_text("utf-8")
    schema = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    document = json.loads((Path("folder") / schema).read_text("utf-8"))
    assert list(Draft202012Validator(document).iter_errors(yaml.safe_load(text))) == []
    assert "testbed run folder/own.yaml" in text


def test_a_second_scenario_shares_the_schema() -> None:
    assert main(["init", "scenario", "one.yaml"]) == main(["init", "scenario", "two.yaml"]) == 0


@pytest.mark.parametrize("what", ["scenario", "scheduler", "manager"])
def test_nothing_is_overwritten(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", what]) == 0
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    capsys.readouterr()
    assert main(["init", what]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.endswith(": nothing is overwritten\n") and said.err.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["scenario", "own.yml.txt"], "own.yml.txt: expected a file name that ends with .yaml"),
        (["scheduler", "crux"], "crux: there is a scheduler 'crux' already, expected another name"),
        (["manager", "gang"], "gang: there is a manager 'gang' already, expected another name"),
        (["scheduler", "json"], "json: there is a Python module 'json' already, expected another name"),
        (
            ["scheduler", "My Own"],
            "My Own: expected a name of lower-case letters, digits, '-' and '_', such as my_sche",
        ),
        (["schedulr"], "testbed init: argument WHAT: invalid choice: 'schedulr', did you mean 'scheduler'?"),
    ],
)
def test_a_wrong_name_is_one_line(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith(line) and said.count("\n") == 1
    assert list(Path().iterdir()) == []


def installed(package: Path) -> Path:
    """A directory that ``package`` is installed in, without the network."""
    target = package.parent / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    offline = ["--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, *offline, "--target", target, package], check=True, capture_output=True)
    return target


def python(target: Path, *arguments: str) -> str:
    """What Python prints with the package in ``target``; it must end with status 0."""
    path = os.pathsep.join((str(target), str(ROOT)))
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=target.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("what", ["scheduler", "manager"])
def test_the_package_is_found_once_it_is_installed_and_its_own_tests_pass(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", what, f"first-{what}"]) == 0
    shown = capsys.readouterr().out.splitlines()
    target = installed(tmp_path / f"first-{what}")
    listed = json.loads(python(target, "-m", "testbed", "list", f"{what}s", "--json"))
    packages = {entry["name"]: entry["package"] for entry in listed["parts" if what == "manager" else "schedulers"]}
    assert packages[f"first-{what}"] == f"first-{what}"
    assert shown[-1].startswith("then: testbed run ") and f"first-{what}" in shown[-1]
    own = str(tmp_path / f"first-{what}" / f"test_first_{what}.py")
    assert " passed" in python(target, "-m", "pytest", "-q", "-p", "no:cacheprovider", own)
