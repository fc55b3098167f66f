"""``runs/index.html``: what it lists, and what it leaves alone."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import testbed
from testbed.cli.main import main
from testbed.errors import BadInputError
from testbed.report import runs_index


def listed(folder: Path) -> dict[str, Any]:
    """The document in the index of ``folder``."""
    text = (folder / "index.html").read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    document: dict[str, Any] = json.loads(found[1])
    return document


def test_a_run_is_listed_when_it_ends(tmp_path: Path) -> None:
    done = testbed.run("hello", engine="flow", out=tmp_path)
    (run,) = listed(tmp_path)["runs"]
    assert run["report"] == f"./{done.directory.name}/report.html" and (tmp_path / run["report"]).is_file()
    assert (run["scenario"], run["schedulers"], run["verdicts"]) == ("hello", ["ecmp", "crux"], "ok")
    assert run["utilization"] == [each["gpu_utilization"] for each in done.summary["runs"]]


def test_the_newest_run_comes_first(write_run, records, tmp_path: Path) -> None:
    old = write_run(*records).path
    new = old.with_name("small-20990101-120000")
    os.rename(write_run(*records).path, new)
    runs_index.update(tmp_path)
    assert [run["directory"] for run in listed(tmp_path)["runs"]] == [new.name, old.name]
    assert listed(tmp_path)["runs"][0]["time"] == "2099-01-01 12:00:00"


def test_runs_that_did_not_finish_or_are_damaged_are_named_without_stopping(write_run, records, tmp_path: Path) -> None:
    write_run(*records, finish=False)
    damaged = write_run(*records).path
    (damaged / "summary.json").write_text("{", "utf-8")
    good = write_run(*records).path
    runs_index.update(tmp_path)
    found = listed(tmp_path)
    assert [run["directory"] for run in found["runs"]] == [good.name]
    assert len(found["unreadable"]) == 2
    assert any(line.startswith(f"{damaged.name}/summary.json: damaged") for line in found["unreadable"])


def test_names_are_text_and_lead_nowhere(write_run, records, tmp_path: Path) -> None:
    evil = tmp_path / "</script><img src=x onerror=alert(1)>".replace("/", "\N{DIVISION SLASH}")
    os.rename(write_run(*records).path, evil)
    summary = json.loads((evil / "summary.json").read_text("utf-8"))
    summary["scenario"] = "</script><script>alert(1)</script>"
    (evil / "summary.json").write_text(json.dumps(summary), "utf-8")
    (evil / "report.html").touch()
    text = runs_index.update(tmp_path).read_text("utf-8")
    assert "<img" not in text and "<script>alert" not in text
    (run,) = listed(tmp_path)["runs"]
    assert run["scenario"] == summary["scenario"]
    assert run["report"].startswith("./%3C")


def test_a_page_of_someone_else_is_left_alone(write_run, records, tmp_path: Path) -> None:
    write_run(*records)
    (tmp_path / "index.html").write_text("my own page", "utf-8")
    with pytest.raises(BadInputError, match="is no index of runs"):
        runs_index.update(tmp_path)
    assert (tmp_path / "index.html").read_text("utf-8") == "my own page"


def test_a_run_beside_a_page_of_someone_else_ends_well_and_says_so(tmp_path: Path, capsys) -> None:
    (tmp_path / "index.html").symlink_to("/etc/passwd")
    assert testbed.run("hello", engine="flow", out=tmp_path).status == 0
    assert "not listed in an index of runs" in capsys.readouterr().err
    assert (tmp_path / "index.html").is_symlink()


def test_report_of_a_folder_of_runs_is_its_index(write_run, records, tmp_path: Path, capsys) -> None:
    write_run(*records)
    assert main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'index.html'}\n"
    assert main(["report", str(tmp_path)]) == 0


def test_an_empty_folder_is_no_folder_of_runs(tmp_path: Path, capsys) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "no summary.json in it" in capsys.readouterr().err


def test_sweeps_and_comparisons_are_listed_with_their_reports(write_run, records, tmp_path: Path) -> None:
    write_run(*records)
    (tmp_path / "sweep" / "load").mkdir(parents=True)
    (tmp_path / "sweep" / "load" / "sweep.json").write_text("{}", "utf-8")
    (tmp_path / "compare-1").mkdir()
    (tmp_path / "compare-1" / "report.html").touch()
    runs_index.update(tmp_path)
    assert listed(tmp_path)["comparisons"] == [
        {"directory": "compare-1", "report": "./compare-1/report.html", "what": "comparison"},
        {"directory": "sweep/load", "report": "", "what": "sweep"},
    ]


def test_only_the_newest_runs_are_listed_where_there_are_many(write_run, records, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(runs_index, "MOST_RUNS", 2)
    for _ in range(3):
        write_run(*records)
    text = runs_index.update(tmp_path).read_text("utf-8")
    assert len(listed(tmp_path)["runs"]) == 2
    assert "3 runs, the newest 2 of them below" in text
