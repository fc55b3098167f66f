from __future__ import annotations

import dataclasses
import re
import shutil
import sys
from pathlib import Path

import pytest

import testbed
from testbed.errors import CannotRunError
from testbed.results import data_frames

pandas = pytest.importorskip("pandas")

OLD_RUN = Path(__file__).with_name("old_run")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    done = testbed.run("hello", engine="flow", out=tmp_path_factory.mktemp("runs"))
    return testbed.load(done.directory)


def test_there_is_a_row_per_row_of_the_files(run):
    assert len(run.iterations) == sum(len(record.iterations) for record in run.records.values())
    assert len(run.links) == sum(len(record.links) for record in run.records.values())
    assert list(run.iterations.columns) == list(data_frames.ITERATIONS)
    assert list(run.links.columns) == list(data_frames.LINKS)


def test_the_frames_hold_what_the_summary_says(run):
    """Busy GPU time over allocated GPU time of whole measured iterations is the utilisation of the summary."""
    measured = run.iterations.query("measured")
    length = measured["end_s"] - measured["start_s"]
    found = measured["compute_s"].groupby([measured["scheduler"], measured["job"]]).sum()
    found /= length.groupby([measured["scheduler"], measured["job"]]).sum()
    for row in run.jobs.itertuples():
        assert found[row.scheduler, row.job] == pytest.approx(row.gpu_utilization, rel=1e-6)


def test_the_load_of_a_link_is_the_share_of_its_rate(run):
    row = run.links.iloc[0]
    assert row["load"] == pytest.approx(8 * row["bytes"] / row["interval_s"] / row["capacity"])
    assert run.links["load"].between(0, 1.01).all()


def test_every_flow_has_its_path_in_every_decision(run):
    flows = {flow.id: flow for job in run.experiment.jobs for flow in job.flows}
    assert list(run.decisions.columns) == list(data_frames.DECISIONS)
    for row in run.decisions.itertuples():
        assert row.job == flows[row.flow].job
        assert row.path[0].startswith(flows[row.flow].source) and row.path[-1].endswith(flows[row.flow].target)


def test_levels_are_missing_where_none_was_decided(run):
    by_scheduler = run.decisions.groupby("scheduler")["level"]
    assert by_scheduler.count()["ecmp"] == 0
    assert str(run.decisions["level"].dtype) == str(run.jobs["level"].dtype) == "Int64"


def test_the_gain_stands_beside_each_scheduler_but_the_baseline(run):
    gains = run.schedulers.set_index("scheduler")["gpu_utilization_points"]
    assert gains.isna().tolist() == [True, False]
    assert gains["crux"] == pytest.approx(run.summary["comparison"]["crux"]["gpu_utilization_points"])
    assert run.schedulers["fidelity.verdict"].tolist() == ["ok", "ok"]


def test_frames_join_on_scheduler_and_job(run):
    joined = run.iterations.merge(run.jobs, on=["scheduler", "job"])
    assert len(joined) == len(run.iterations)


@pytest.mark.parametrize("name", ["placed", "managed"])
def test_runs_of_older_versions_give_frames(name, tmp_path):
    shutil.copytree(OLD_RUN / name, tmp_path / name)
    (tmp_path / name / "manifest.json").write_text("{}", "utf-8")
    old = testbed.load(tmp_path / name)
    assert all(len(frame) for frame in (old.iterations, old.links, old.decisions, old.jobs, old.schedulers))


def test_a_run_without_rows_gives_empty_frames_with_all_columns(write_run, records):
    empty = dataclasses.replace(records[0], iterations=(), links=(), decisions=(), windows={})
    run = testbed.load(write_run(empty).path)
    assert (len(run.iterations), len(run.links), len(run.decisions)) == (0, 0, 0)
    assert list(run.links.columns) == list(data_frames.LINKS)


def test_a_missing_pandas_is_one_line_with_the_command_that_installs_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(CannotRunError) as caught:
        data_frames.jobs_frame(run.summary)
    assert re.fullmatch(
        r"reading results as data frames needs pandas: pip install '\S+\[notebook\]'", str(caught.value)
    )


def test_the_documents_list_exactly_the_columns():
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "draw-figures.md").read_text("utf-8")
    for name, columns in (
        ("iterations", data_frames.ITERATIONS),
        ("links", data_frames.LINKS),
        ("messages", data_frames.MESSAGES),
        ("decisions", data_frames.DECISIONS),
    ):
        table = page[page.index(f"| `run.{name}` | unit |") :].split("\n\n")[0]
        cells = [line.split("|")[1] for line in table.splitlines()[2:]]
        assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == sorted(columns)
