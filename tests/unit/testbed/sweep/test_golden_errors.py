"""Broken sweeps: the message beside each file is exactly what its reader sees, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import BadInputError
from testbed.sweep.checking import points_of
from testbed.sweep.loading import load

GOLDEN = Path(__file__).parent / "golden"
BROKEN = sorted(path.stem for path in GOLDEN.glob("*.yaml"))


def test_every_golden_file_has_its_message_and_every_message_its_file() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.txt")) == BROKEN


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_sweep_says_what_is_wrong_line_by_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(BadInputError) as error:
        points_of(load(f"{name}.yaml"))
    assert f"{error.value}\n" == Path(f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BROKEN)
def test_every_line_of_a_message_names_its_place_and_what_was_expected(name: str) -> None:
    for line in (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        file, number, message = line.split(":", 2)
        assert file in (f"{name}.yaml", "scenarios/broken.yaml") and number.isdigit()
        assert "expected" in message or "did you mean" in message
