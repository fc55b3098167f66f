"""Editors check scenarios by the schema: it says what the loader says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from testbed import bundled_scenarios
from testbed.cli.main import main
from testbed.scenario import bundled, json_schema
from testbed.scenario.editor_schema import ID

ROOT = Path(__file__).parents[4]
FILE = ROOT / "testbed" / "scenarios" / "scenario.schema.json"


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def hello(**changes: object) -> dict[str, Any]:
    return {**yaml.safe_load(bundled_scenarios.text("hello.yaml")), **changes}


@pytest.mark.parametrize("name", bundled())
def test_every_bundled_scenario_follows_the_schema_and_names_it(name: str, validator: Draft202012Validator) -> None:
    text = bundled_scenarios.text(name)
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={FILE.name}"
    assert [error.message for error in validator.iter_errors(yaml.safe_load(text))] == []


def test_the_schema_beside_the_bundled_scenarios_is_that_of_the_code() -> None:
    command = f"python -m testbed schema --out {FILE.relative_to(ROOT)}"
    assert json.loads(FILE.read_text("utf-8")) == json_schema(), f"run: {command}"


def test_the_schema_is_named_and_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--out", str(tmp_path / "own.json")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'own.json'}\n"
    assert json.loads((tmp_path / "own.json").read_text("utf-8"))["$id"] == ID == json_schema()["$id"]
    assert main(["schema", "--out", str(tmp_path / "no" / "own.json")]) == 1


@pytest.mark.parametrize(
    ("place", "known"),
    [
        (("JobEntry", "properties", "model", "oneOf", 0, "enum"), "crux-gpt"),
        (("SchedulerName", "anyOf", 0, "enum"), "crux"),
        (("PolicyName", "anyOf", 0, "enum"), "tiresias"),
        (("ManagerSpec", "properties", "name", "enum"), "philly"),
    ],
)
def test_an_editor_can_offer_the_names_that_exist(place: tuple[str | int, ...], known: str) -> None:
    found: Any = json_schema()["$defs"]
    for step in place:
        found = found[step]
    assert known in found


@pytest.mark.parametrize(
    "changes",
    [
        {"schedulers": ["ecmp", "of-another-package"]},
        {"schedulers": ["ecmp", {"name": "of-another-package", "its": "option"}]},
        {"manager": "tiresias"},
        {"manager": {"name": "tiresias", "policy": "of-another-package", "placer": {"name": "hived"}}},
    ],
)
def test_names_of_packages_that_are_not_here_are_accepted(
    changes: dict[str, object], validator: Draft202012Validator
) -> None:
    assert [error.message for error in validator.iter_errors(hello(**changes))] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"jobs": [{"name": "a", "model": "gptt", "gpus": 2}]},
        {"jobs": [{"name": "a", "model": "gpt", "gpus": 2, "collective": "gossip"}]},
        {"schedulers": ["two words"]},
        {"manager": "borg"},
        {"fabric": {"kind": "torus"}},
        {"schedular": ["ecmp"]},
    ],
)
def test_what_no_package_can_add_is_refused(changes: dict[str, object], validator: Draft202012Validator) -> None:
    assert not validator.is_valid(hello(**changes))
