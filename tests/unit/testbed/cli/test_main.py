from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.cli import main as command_line
from testbed.cli.main import VERBS, explain, main
from testbed.errors import BadInputError, CannotRunError, RunFailedError

ROOT = Path(__file__).parents[4]


def give_doctor(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def run(arguments: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr("testbed.cli.doctor.run", run)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "testbed: the following arguments are required: VERB (see testbed --help)\n"),
        (["doctor", "--fast"], "testbed doctor: unrecognized arguments: --fast (see testbed doctor --help)\n"),
        (
            ["run", "hello", "--engin=flow", "--sheduler", "crux"],
            "testbed run: unrecognized arguments: --sheduler crux, did you mean --scheduler?"
            " (see testbed run --help)\n",
        ),
        (
            ["run", "hello", "--engine", "flwo"],
            "testbed run: argument --engine: invalid choice: 'flwo', did you mean 'flow'? (see testbed run --help)\n",
        ),
        (["valdate"], "testbed: unknown verb 'valdate', did you mean 'validate'? (see testbed --help)\n"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", line)


def test_a_verb_that_is_like_none_is_named_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fly"]) == 2
    error = capsys.readouterr().err
    assert "'fly'" in error and "doctor" in error and error.count("\n") == 1


def test_help_names_every_verb_that_exists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in VERBS if f"    {name} " not in shown and f"    {name}\n" not in shown] == []


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_has_its_file_name_and_a_help_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: testbed {name} ")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RunFailedError("switch tor0 went away"), 1),
        (BadInputError("a.yaml:3: unknown key 'gpu', expected gpus"), 2),
        (CannotRunError("emulation needs root: run with sudo"), 3),
    ],
)
def test_an_error_of_the_testbed_is_its_own_line_and_status(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_doctor(monkeypatch, error)
    assert main(["doctor"]) == status
    assert capsys.readouterr() == ("", f"{error}\n")


def test_an_interrupt_is_one_line_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_doctor(monkeypatch, KeyboardInterrupt())
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err == "testbed: interrupted\n"


def test_a_file_that_cannot_be_opened_is_named_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_doctor(monkeypatch, PermissionError(13, "Permission denied", "runs/x"))
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err == "testbed: runs/x: Permission denied\n"


def test_a_bug_is_one_line_and_its_traceback_is_in_the_named_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(command_line.tempfile, "tempdir", str(tmp_path))
    give_doctor(monkeypatch, ZeroDivisionError("no flows\nat all"))
    assert main(["doctor"]) == 1
    line = capsys.readouterr().err
    assert line.startswith("testbed: ZeroDivisionError: no flows at all; please report; details in ")
    assert line.count("\n") == 1
    details = Path(line.split("details in ")[1].strip())
    assert details.parent == tmp_path
    assert "Traceback" in details.read_text()


@pytest.mark.parametrize("how", ["option", "variable"])
def test_the_traceback_is_shown_only_on_demand(
    how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_doctor(monkeypatch, RunFailedError("the link is down"))
    monkeypatch.setenv("TESTBED_DEBUG", "1" if how == "variable" else "0")
    assert main(["doctor", "--debug"] if how == "option" else ["doctor"]) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.endswith("the link is down\n")


def test_a_reader_that_leaves_the_pipe_causes_no_complaint() -> None:
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from testbed.cli.main import main; raise SystemExit(main(['doctor', '--json', '--no-rehearsal']))",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "TESTBED_DEBUG": "0"},
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    said = child.stderr.read()
    child.stderr.close()
    assert (child.wait(), said) == (1, b"")


def test_explaining_never_raises_when_no_log_can_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(command_line.tempfile, "tempdir", str(tmp_path / "missing"))
    assert explain(KeyError("gpt")) == 1
    assert capsys.readouterr().err == (
        "testbed: KeyError: 'gpt'; please report; details in the output of the same command with --debug\n"
    )


@pytest.mark.parametrize("arguments", [["schedulers", "--json"], ["--help"], ["schema"]])
def test_output_that_cannot_be_written_is_one_line_and_status_1(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "testbed", *arguments]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "testbed: output cannot be written: No space left on device\n"


def test_an_option_of_thousands_of_digits_is_one_short_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "hello.yaml", "--seed", "9" * 5000]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert len(error) < 1200
