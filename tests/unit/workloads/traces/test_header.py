"""A table whose columns are there, but written otherwise, is told what is other about them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from topologies.table import TraceError, read_rows, written_otherwise
from workloads.traces.registry import read_trace

COLUMNS = ("job_id", "submission_time", "num_gpu", "duration")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("job_id;submission_time;num_gpu;duration", "the columns of the format itp, but cells are separated by ';'"),
        ("job_id|submission_time|num_gpu|duration", "the columns of the format itp, but cells are separated by '|'"),
        (
            "Job_ID,submission_time,num_gpu,duration",
            "the columns of the format itp, but job_id written with other capi",
        ),
        ("JOB_ID;submission_time;num_gpu;duration", "by ';' and job_id written with other capitals"),
        ("job_id,submission_time,gpus,duration", "for itp it lacks num_gpu"),
    ],
)
def test_a_trace_with_a_header_of_its_own_is_told_what_is_other(header: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(f"{header}\n1,2,3,4\n")
    with pytest.raises(TraceError) as error:
        read_trace(path)
    assert said in str(error.value) and str(error.value).startswith(f"{path}:1: ")


def test_a_table_says_which_columns_it_lacks_and_why(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job_id;num_gpu\n1;2\n")
    with pytest.raises(
        TraceError, match=r"jobs.csv:1: no columns job_id, num_gpu: cells are separated by ';', expected"
    ):
        list(read_rows(path, ("job_id", "num_gpu"), Counter()))


def test_columns_that_are_not_there_have_no_excuse() -> None:
    assert written_otherwise(COLUMNS, COLUMNS[:2]) == ""
    assert written_otherwise(("a;b",), ("a", "c")) == ""


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("job_id;submission_time;num_gpu", "(for itp it lacks duration; cells are separated by ';')"),
        ("Job_ID,submission_time,num_gpu", "(for itp it lacks duration; job_id written with other capitals)"),
        ("a;b;c", "(cells are separated by ';', expected commas)"),
    ],
)
def test_a_trace_that_lacks_a_column_is_told_that_and_what_is_other(header: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(f"{header}\n1;2;3\n")
    with pytest.raises(TraceError) as error:
        read_trace(path)
    assert said in str(error.value)


def test_a_table_that_lacks_a_column_in_any_case_is_told_which(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job_id;gpus\n1;2\n")
    said = "no columns job_id, num_gpu: cells are separated by ';'; num_gpu is not there in any case, expected"
    with pytest.raises(TraceError, match=said):
        list(read_rows(path, ("job_id", "num_gpu"), Counter()))


@pytest.mark.parametrize(
    "header", ["job_id;submission_time;duration;num_gpu", "job_id,submission_time,Duration,num_gpu"]
)
def test_a_folder_of_tables_written_otherwise_is_told_so_with_the_file(header: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster01.csv"
    path.write_text(f"{header}\n1,2,3,4\n")
    with pytest.raises(TraceError) as error:
        read_trace(tmp_path)
    assert str(error.value).startswith(f"{path}:1: no column")


def test_a_folder_of_tables_that_lack_a_column_is_told_which(tmp_path: Path) -> None:
    (tmp_path / "cluster01.csv").write_text("job_id;submission_time;num_gpu\n1;2;3\n")
    with pytest.raises(TraceError) as error:
        read_trace(tmp_path)
    assert "cluster01.csv (for itp it lacks duration; cells are separated by ';')" in str(error.value)


def test_a_column_that_may_be_left_out_is_not_lost_by_its_capitals(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("name,submit_s,duration_s,gpus,Model\na,0,60,2,bert\n")
    with pytest.raises(
        TraceError, match=r"jobs.csv:1: a column is called 'Model', expected 'model', in these capitals"
    ):
        read_trace(path)
    path.write_text("name,submit_s,duration_s,gpus,model\na,0,60,2,bert\n")
    assert [job.model for job in read_trace(path).jobs] == ["bert"]
