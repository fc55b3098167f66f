"""What failed and whom it stopped, on the page, as a plot, and in the terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from testbed.api import RunResult, run_scenario
from testbed.report import html
from testbed.report.failure_plot import draw_failures
from testbed.report.page.failures_view import failures_table
from testbed.report.plots import svg
from testbed.report.tables import show_summary
from testbed.results.failed_parts import failed_parts, stopped_jobs
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("failures")
    return run_scenario("hpn-failures-single", engine="flow", schedulers=["crux"], out=folder)


@pytest.fixture
def record(done: RunResult) -> RunRecord:
    (found,) = RunDirectory.open(done.directory).read_records()
    return found


def test_each_part_has_a_row_with_the_jobs_that_stood_still(record: RunRecord) -> None:
    table = failures_table([record])
    assert table is not None
    told = {row[0]: row[-1] for row in table["rows"]}
    assert told == {
        "h0n0p0->tor0": "gpt 4.0 s",
        "tor0": "bert 3.0 s, gpt 3.0 s, resnet 3.0 s",
        "agg0": "none",
    }


def test_a_run_without_failures_has_no_such_table(tmp_path: Path) -> None:
    made = run_scenario("hello", engine="flow", schedulers=["ecmp"], out=tmp_path)
    directory = RunDirectory.open(made.directory)
    (record,) = directory.read_records()
    html.build(directory, plots=True)
    assert (failures_table([record]), failed_parts(record), stopped_jobs(record)) == (None, [], [])
    assert not list((made.directory / "plots").glob("failures*"))


def test_the_plot_names_parts_and_jobs(record: RunRecord, done: RunResult) -> None:
    drawn = svg(draw_failures(record))
    for word in ("h0n0p0-", "tor0", "agg0", "gpt", "bert", "resnet", "stands still"):
        assert word in drawn
    html.build(RunDirectory.open(done.directory), plots=True)
    assert (done.directory / "plots" / "failures_crux.svg").is_file()


def test_points_lost_to_failures_are_a_column_and_in_the_headline(done: RunResult) -> None:
    console = Console(record=True, width=160, file=io.StringIO())
    show_summary(done.summary, console)
    text = console.export_text()
    assert "failures: failures of the network or of hosts stopped it" in " ".join(text.split())
    assert " to failures" in text
