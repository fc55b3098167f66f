"""What was changed in a run directory after the run is said, and does not keep it from being read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pytest

from testbed.api import load
from testbed.cli.main import main
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory

WriteRun = Callable[..., RunDirectory]
Records = tuple[RunRecord, ...]


def test_the_manifest_has_the_checksum_of_every_file_but_those_that_report_makes(
    write_run: WriteRun, records: Records
) -> None:
    directory = write_run(*records)
    recorded = directory.read_json("manifest.json")["files_sha256"]
    own = (
        "alone.csv",
        "decisions.json",
        "iterations.csv",
        "links.csv",
        "messages.csv",
        "run.json",
        "testbed.log",
        "timeline.json",
    )
    assert set(recorded) == {
        "experiment.json",
        "summary.json",
        *(f"{name}/{f}" for name in ("ecmp", "crux") for f in own),
    }
    for name, digest in recorded.items():
        assert digest == hashlib.sha256((directory.path / name).read_bytes()).hexdigest()


def test_the_rest_of_the_manifest_stays(write_run: WriteRun, records: Records) -> None:
    manifest = write_run(*records).read_json("manifest.json")
    assert manifest["versions"] == {"python": "3.11"}


@pytest.mark.parametrize("verb", ["report", "compare"])
def test_an_untouched_run_is_not_doubted(
    write_run: WriteRun, records: Records, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    directory = write_run(*records)
    for _ in range(2):
        assert main([verb, str(directory.path)]) == 0
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("verb", ["report", "compare"])
def test_what_was_changed_or_is_missing_is_one_line_and_the_command_still_works(
    write_run: WriteRun, records: Records, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    directory = write_run(*records)
    rows = directory.path / "crux" / "links.csv"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:-1]))
    (directory.path / "ecmp" / "testbed.log").unlink()
    assert main([verb, str(directory.path)]) == 0
    printed = capsys.readouterr()
    assert printed.err == f"{directory.path}: changed since the run ended: crux/links.csv, ecmp/testbed.log\n"
    assert load(directory.path).changed == ("crux/links.csv", "ecmp/testbed.log")


def test_the_report_says_it_too(write_run: WriteRun, records: Records) -> None:
    directory = write_run(*records)
    assert main(["report", str(directory.path)]) == 0
    assert '"changed":[]' in (directory.path / "report.html").read_text()
    (directory.path / "ecmp" / "testbed.log").write_text("later")
    assert main(["report", str(directory.path)]) == 0
    assert '"changed":["ecmp/testbed.log"]' in (directory.path / "report.html").read_text()


def test_a_comparison_in_json_stays_a_document(
    write_run: WriteRun, records: Records, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_run(*records)
    (directory.path / "ecmp" / "testbed.log").write_text("later")
    assert main(["compare", "--json", str(directory.path)]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["runs"] and "ecmp/testbed.log" in printed.err


def test_a_run_of_an_older_version_without_checksums_is_not_doubted(write_run: WriteRun, records: Records) -> None:
    directory = write_run(*records)
    manifest = directory.read_json("manifest.json")
    del manifest["files_sha256"]
    directory.write_manifest(manifest)
    assert directory.doubt() == ""
    (directory.path / "manifest.json").unlink()
    assert directory.doubt() == ""


@pytest.mark.parametrize("text", ["{", "[]", '{"files_sha256": {"../../x": "0"}}', '{"files_sha256": ["x"]}'])
def test_a_manifest_that_cannot_tell_says_so(
    write_run: WriteRun, records: Records, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_run(*records)
    (directory.path / "manifest.json").write_text(text)
    assert main(["report", str(directory.path)]) == 0
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{directory.path}/manifest.json: ")
    assert said.endswith("; whether other files were changed cannot be told")
