"""Broken scenarios: the message beside each file is exactly what its reader sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import BadInputError
from testbed.scenario import load

GOLDEN = Path(__file__).parent / "golden"
BROKEN = sorted(path.stem for path in GOLDEN.glob("*.yaml"))


def message_for(name: str) -> str:
    """What loading ``name`` says; the file's leading comments may hold ``--set`` options."""
    path = f"{name}.yaml"
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    overrides = [line.removeprefix("# --set ") for line in lines if line.startswith("# --set ")]
    with pytest.raises(BadInputError) as error:
        load(path, overrides, models=["bert", "gpt", "resnet"], schedulers=["crux", "ecmp"])
    return f"{error.value}\n"


def test_every_golden_file_has_its_message_and_every_message_its_file() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.txt")) == BROKEN


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_scenario_says_what_is_wrong_line_by_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN)
    assert message_for(name) == Path(f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BROKEN)
def test_every_line_of_a_message_names_its_place_and_says_one_thing(name: str) -> None:
    for line in (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        assert line.startswith((f"{name}.yaml:", "--set "))
        assert any(word in line for word in ("expected", "did you mean", "must", "not valid YAML"))
