"""Values of a sweep that are long, have several lines or cannot be: each message is one line that names the sweep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from testbed.errors import BadInputError
from testbed.sweep.checking import points_of
from testbed.sweep.loading import load, yaml_of


def refusal(value: str, folder: Path, key: str = "jobs.small.jitter") -> str:
    path = folder / "w.yaml"
    path.write_text(f"scenario: hello.yaml\nengine: flow\nset:\n  {key}: [0.0, {value}]\n")
    with pytest.raises(BadInputError) as error:
        points_of(load(str(path)))
    said = str(error.value)
    assert len(said.splitlines()) == 1
    assert said.isprintable()
    assert len(said) < 1100
    return said.removeprefix(str(path))


@pytest.mark.parametrize(
    "value",
    ["9" * 100_000, '"' + "x" * 5000 + '"', '"a\\nb\\e[31m"', "{" + "a" * 700 + ": b}", "[1, " + "2, " * 1000 + "3]"],
)
def test_a_value_that_cannot_be_is_refused_in_one_line_at_its_own(value: str, tmp_path: Path) -> None:
    assert refusal(value, tmp_path).startswith(":4: ")


def test_a_key_of_many_lines_is_refused_in_one(tmp_path: Path) -> None:
    assert refusal("0.1", tmp_path, key='"jobs.a\\nb"').startswith(":4: ")


@pytest.mark.parametrize("value", ["a\nb", "a\n\n b\n", {"a\nb": ["c\n", 1, None, True, 1.5]}])
def test_a_value_of_many_lines_reads_back_from_one(value: object) -> None:
    assert "\n" not in yaml_of(value)
    assert yaml.safe_load(yaml_of(value)) == value


def test_a_sweep_that_is_a_pipe_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    os.mkfifo(path)
    with pytest.raises(BadInputError, match=r"w\.yaml: cannot be read \(a pipe and no regular file\), exp"):
        load(str(path))
