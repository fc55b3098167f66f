"""``testbed list`` as its user meets it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.cli.discovery.list import KINDS
from testbed.cli.main import main
from testbed.scenario import bundled
from testbed.scenario.network.fabrics import FABRICS
from workloads.communication.collectives import COLLECTIVES
from workloads.managers import registry
from workloads.managers.catalogue import MANAGERS
from workloads.models.catalogue import CATALOGUE
from workloads.training.shape_files import shapes

EXPECTED = {
    "scenarios": [name.removesuffix(".yaml") for name in bundled()],
    "models": [*CATALOGUE, *shapes()],
    "managers": list(MANAGERS),
    "collectives": list(COLLECTIVES),
    "fabrics": list(FABRICS),
}


def document_of(kind: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["list", kind, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize("kind", EXPECTED)
def test_everything_is_listed_with_a_line_about_it(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    entries = document_of(kind, capsys)[kind]
    assert [entry["name"] for entry in entries] == EXPECTED[kind]
    assert [entry["name"] for entry in entries if not entry["summary"] or "\n" in entry["summary"]] == []


def test_schedulers_are_listed_as_by_their_own_verb(capsys: pytest.CaptureFixture[str]) -> None:
    listed = document_of("schedulers", capsys)
    assert main(["schedulers", "--json"]) == 0
    assert listed == json.loads(capsys.readouterr().out)


def test_the_parts_of_managers_are_listed_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    parts = {(part["kind"], part["name"]) for part in document_of("managers", capsys)["parts"]}
    assert parts == {(point, name) for point in registry.GROUPS for name in registry.names(point)}


@pytest.mark.parametrize("width", ["80", "120"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_fits_and_says_what_it_leaves_out(
    kind: str, width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert main(["list", kind]) == 0
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()) <= int(width)
    assert "…" not in shown and all(name in shown for name in EXPECTED.get(kind, ["ecmp", "crux"]))


def test_what_cannot_be_listed_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "model"]) == 2
    line = "testbed list: argument WHAT: invalid choice: 'model', did you mean 'models'? (see testbed list --help)\n"
    assert capsys.readouterr().err == line
