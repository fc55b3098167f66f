from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import BadInputError
from testbed.metrics.summary import summary
from testbed.results import row_files
from testbed.results.record import IterationRow, LinkRow
from testbed.results.run_directory import RunDirectory, open_all, read_record

FILES = [
    "alone.csv",
    "decisions.json",
    "iterations.csv",
    "links.csv",
    "messages.csv",
    "run.json",
    "testbed.log",
    "timeline.json",
]
NUMBERS = st.floats(min_value=0, max_value=1e12, allow_nan=False)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)


def test_a_run_is_marked_unfinished_from_its_first_moment_until_its_end(tmp_path):
    directory = RunDirectory.create(tmp_path, "hello", now=0.0)
    assert [path.name for path in directory.path.iterdir()] == ["UNFINISHED"]
    assert [path.name for path in tmp_path.iterdir()] == [directory.path.name]
    directory.finish()
    assert list(directory.path.iterdir()) == []


def test_two_runs_of_the_same_second_have_directories_of_their_own(tmp_path):
    first, second = (RunDirectory.create(tmp_path, "hello", now=0.0).path for _ in range(2))
    assert second.name == f"{first.name}-2"


def test_a_scenario_name_cannot_lead_out_of_the_runs_directory(tmp_path):
    assert RunDirectory.create(tmp_path, "../x y", now=0.0).path.parent == tmp_path


def test_a_record_reads_back_as_it_was_written(write_run, records):
    directory = write_run(*records)
    assert directory.read_records() == records
    assert read_record(directory.path, "crux") == records[1]
    assert sorted(path.name for path in (directory.path / "ecmp").iterdir()) == FILES


def test_the_experiment_reads_back_without_its_scheduler(write_run, records, experiment):
    back = write_run(*records).read_experiment()
    assert (back.fabric, back.jobs, back.scale) == (experiment.fabric, experiment.jobs, experiment.scale)
    assert back.scheduler.name == ""


def test_the_summary_is_recomputed_from_the_other_files(write_run, records):
    directory = write_run(*records)
    recomputed = summary(directory.read_experiment(), directory.read_records())
    assert json.dumps(recomputed, indent=1) + "\n" == (directory.path / "summary.json").read_text()


def test_the_agreed_columns_come_first_in_their_order():
    iterations = ["job", "gpu", "iteration", "start_s", "compute_s", "communication_s", "exposed_s", "end_s"]
    assert list(row_files.ITERATION_COLUMNS)[:8] == iterations
    assert list(row_files.LINK_COLUMNS)[:6] == ["time_s", "link", "level", "bytes", "queued_bytes", "drops"]


@given(
    st.lists(
        st.builds(
            IterationRow,
            *(NAMES, NAMES, st.integers(0, 9999)),
            *(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
            st.booleans(),
        )
    )
)
def test_iteration_rows_survive_the_file(rows):
    assert row_files.iterations_from_csv(row_files.iterations_to_csv(rows)) == tuple(rows)


@given(st.lists(st.builds(LinkRow, NUMBERS, NAMES, st.integers(0, 7), NUMBERS, NUMBERS, st.integers(0))))
def test_link_rows_survive_the_file(rows):
    assert row_files.links_from_csv(row_files.links_to_csv(rows)) == tuple(rows)


def test_an_unfinished_run_is_refused_in_one_line(write_run, records):
    directory = write_run(*records, finish=False)
    with pytest.raises(BadInputError) as refusal:
        RunDirectory.open(directory.path)
    assert str(refusal.value) == f"{directory.path}: this run was not finished, expected a complete run directory"


def test_every_directory_that_is_no_run_is_named(tmp_path):
    with pytest.raises(BadInputError) as refusal:
        open_all([tmp_path, tmp_path / "nowhere"])
    assert str(refusal.value).splitlines() == [
        f"{tmp_path}: no summary.json in it, expected the directory of a run",
        f"{tmp_path / 'nowhere'}: no such directory, expected the directory of a run",
    ]


@pytest.mark.parametrize(
    ("name", "damage", "complaint"),
    [
        ("iterations.csv", "job,gpu\n", ":1: the columns are"),
        ("links.csv", None, "no such file"),
        ("decisions.json", "[{}]", "damaged (no 'time_s')"),
        ("decisions.json", "[", "damaged ("),
        ("run.json", "{}", "damaged (no 'scheduler')"),
        ("run.json", "[]", "damaged ("),
    ],
)
def test_a_damaged_file_is_named_in_one_line(write_run, records, name, damage, complaint):
    directory = write_run(*records)
    file: Path = directory.path / "crux" / name
    file.unlink()
    if damage is not None:
        file.write_text(damage)
    with pytest.raises(BadInputError) as refusal:
        directory.read_record("crux")
    assert str(refusal.value).startswith(str(file))
    assert complaint in str(refusal.value)
    assert len(str(refusal.value).splitlines()) == 1


def test_a_damaged_row_is_named_with_its_line(write_run, records):
    directory = write_run(*records)
    file = directory.path / "ecmp" / "links.csv"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], lines[2].replace(",0", ",x", 1), *lines[3:]]))
    with pytest.raises(BadInputError, match=r"links\.csv:3: not a row"):
        directory.read_record("ecmp")


def test_a_summary_of_another_version_is_refused(write_run, records):
    directory = write_run(*records)
    (directory.path / "summary.json").write_text('{"schema_version": 3, "runs": []}')
    with pytest.raises(BadInputError, match="schema_version 3"):
        directory.read_summary()


@pytest.mark.parametrize("moment", range(0, 12))
def test_a_run_killed_at_any_file_is_marked_and_holds_only_whole_files(
    write_run, records, monkeypatch, tmp_path, moment
):
    renames = []
    rename = Path.replace

    def killed_at_moment(draft, target):
        if len(renames) == moment:
            raise KeyboardInterrupt
        renames.append(target)
        return rename(draft, target)

    monkeypatch.setattr(Path, "replace", killed_at_moment)
    with pytest.raises(KeyboardInterrupt):
        write_run(*records)
    (directory,) = tmp_path.iterdir()
    assert (directory / "UNFINISHED").exists()
    files = {path for path in directory.rglob("*") if path.is_file()} - {directory / "UNFINISHED"}
    assert {path for path in files if path.name != "testbed.log"} == set(renames)
    assert all(json.loads(path.read_text()) for path in files if path.suffix == ".json")
