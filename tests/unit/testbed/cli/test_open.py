"""``testbed open`` finds the report, and starts a browser only where there is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.cli.main import main


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The addresses that the browser was asked for, by a user with a display; older and newer are runs."""
    opened: list[str] = []
    monkeypatch.chdir(tmp_path)
    for age, name in ((100, "hello-20260102-000000"), (50, "clos96-20260101-000000")):
        directory = tmp_path / "runs" / name
        directory.mkdir(parents=True)
        (directory / "report.html").touch()
        os.utime(directory / "report.html", (1e9 - age, 1e9 - age))
    (tmp_path / "runs" / "unfinished").mkdir()
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("DISPLAY", ":0")
    return opened


def test_without_a_name_the_newest_report_is_shown(shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["open"]) == 0
    assert capsys.readouterr().out == "runs/clos96-20260101-000000/report.html\n"
    assert [address.rpartition("/runs/")[2] for address in shown] == ["clos96-20260101-000000/report.html"]


@pytest.mark.parametrize("name", ["hello-20260102-000000", "runs/hello-20260102-000000"])
def test_a_run_is_shown_by_its_name_or_its_path(name: str, shown: list[str]) -> None:
    assert main(["open", name]) == 0
    assert [address.rpartition("/runs/")[2] for address in shown] == ["hello-20260102-000000/report.html"]


def test_without_a_display_the_path_is_printed_and_nothing_is_started(
    shown: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert main(["open"]) == 0
    said = capsys.readouterr()
    assert said.out == "runs/clos96-20260101-000000/report.html\n" and said.err.startswith("no display here")
    assert shown == []


def test_root_starts_no_browser(
    shown: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert main(["open"]) == 0
    assert "not started as root" in capsys.readouterr().err and shown == []


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["hello-20260102-00000"], "hello-20260102-00000: no such run, did you mean 'hello-20260102-000000'?"),
        (["nowhere"], "nowhere: no such run, expected the directory of a run"),
        (
            ["unfinished"],
            "runs/unfinished: no report.html in it, expected one: 'testbed report runs/unfinished' writes",
        ),
        (["--out", "other"], "other: no run with a report, expected one made by 'testbed run'"),
    ],
)
def test_what_cannot_be_shown_is_one_line(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["open", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith(line) and said.count("\n") == 1
