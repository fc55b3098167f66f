from __future__ import annotations

from pathlib import Path

import pytest

from controller.__main__ import main, parse_options


def test_options_are_pairs_whose_value_may_be_json() -> None:
    assert parse_options(["paths=false", "seed=3", "name=x=y"]) == {"paths": False, "seed": 3, "name": "x=y"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scheduler", "no-such"], "controller: unknown scheduler 'no-such', expected one of "),
        (["--scheduler", "crux", "--option", "paths"], "controller: 'paths' is not KEY=VALUE"),
        (["--scheduler", "crux", "--option", "speed=1"], "controller: unknown option 'speed' of scheduler crux"),
        (
            ["--scheduler", "crux", "--fabric", "/nowhere.json"],
            "controller: /nowhere.json: No such file or directory, exp",
        ),
        (["--scheduler", "crux", "--fabric", "/dev/zero"], "controller: /dev/zero: a device and no regular file, exp"),
        (["--scheduler", "crux", "--option", "fairness=" + "9" * 5000], "controller: option 'fairness' of crux"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(message)
    assert errors.count("\n") == 1


def test_a_fabric_that_is_no_json_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fabric.json"
    file.write_text("{")
    assert main(["--scheduler", "ecmp", "--fabric", str(file)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("option", ["--rest-port", "--openflow-port"])
@pytest.mark.parametrize("port", ["99999", "-1", "x", "1" * 5000])
def test_a_number_that_is_no_port_is_one_line_and_status_2(
    option: str, port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--scheduler", "ecmp", f"{option}={port}"])
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"controller: argument {option}: '{port[:9]}")
    assert errors.count("\n") == 1
