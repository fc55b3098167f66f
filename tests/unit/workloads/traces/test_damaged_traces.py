"""Traces that are damaged on purpose are refused in one line, and none takes all time or memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.table import TraceError
from workloads.traces import lingjun, philly
from workloads.traces.registry import read_trace
from workloads.traces.trace import unique

Writer = Callable[[str, str], Path]

ITP = "job_id,submission_time,duration,num_gpu\n"
OWN = "name,submit_s,duration_s,gpus\na,0,1,1\n"
ATTEMPT: dict[str, Any] = {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:09", "detail": []}
JOB: dict[str, Any] = {
    "status": "Pass",
    "jobid": "a",
    "submitted_time": "2017-10-07 01:11:39",
    "attempts": [ATTEMPT],
}


def refusal(path: Path) -> str:
    with pytest.raises(TraceError) as error:
        read_trace(path)
    said = str(error.value)
    assert len(said.splitlines()) == 1
    assert said.startswith(str(path))
    return said.removeprefix(str(path))


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({**JOB, "status": ["Pass"]}, ":1: status is ['Pass'], expected a text such as Pass"),
        ({**JOB, "submitted_time": ["2017"]}, ":1: submitted_time is ['2017'], expected a time"),
        ({**JOB, "attempts": [{"start_time": {}, "end_time": None}]}, ":1: start_time is {}, expected a time"),
        ({**JOB, "status": {"value": "Pass"}}, ":1: status is {'value': 'Pass'}, expected a text such as Pass"),
        ({**JOB, "jobid": ["a"]}, ":1: jobid is ['a'], expected a text or a number"),
        ({**JOB, "vc": {"name": "x"}}, ":1: vc is {'name': 'x'}, expected a text or a number"),
        ({**JOB, "user": ["y"] * 99}, ":1: user is ['y', 'y', 'y', 'y', 'y', 'y', 'y', '..., expected a text"),
        ({**JOB, "attempts": [{**ATTEMPT, "detail": [{"ip": ["m"], "gpus": []}]}]}, ":1: ip is ['m'], expected a text"),
        ({**JOB, "attempts": [{**ATTEMPT, "detail": [{"ip": [], "gpus": []}]}]}, ":1: ip is [], expected a text"),
        ({**JOB, "attempts": [{**ATTEMPT, "detail": [{"ip": "m", "gpus": "gpu0"}]}]}, ":1: a detail has no ip or gpus"),
        ({**JOB, "attempts": [{**ATTEMPT, "detail": {}}]}, ":1: a detail has no ip or gpus"),
        ({**JOB, "attempts": [{**ATTEMPT, "detail": 0}]}, ":1: a detail has no ip or gpus"),
        ({**JOB, "jobid": "\ud800"}, ":1: jobid is '\\ud800', expected a text or a number"),
        ({**JOB, "attempts": [{**ATTEMPT, "detail": "m1"}]}, ":1: a detail has no ip or gpus"),
    ],
)
def test_a_list_where_philly_has_text_is_refused(written: Writer, job: dict[str, Any], message: str) -> None:
    assert refusal(written("log", json.dumps([job]))).startswith(message)


def test_text_after_the_list_of_jobs_is_refused_at_its_line(written: Writer) -> None:
    path = written("log", json.dumps([JOB], indent=1) + "\n\n[]\n")
    lines = json.dumps([JOB], indent=1).count("\n") + 1
    assert refusal(path) == f":{lines + 2}: '[]\\n' after the list of jobs, expected nothing"


def test_a_status_nested_so_deeply_that_it_cannot_be_shown_is_refused(written: Writer) -> None:
    for depth in range(100, 1000, 20):
        path = written("log", json.dumps([JOB]).replace('"Pass"', "[" * depth + "]" * depth))
        assert refusal(path).startswith(":1: ")


def test_json_with_a_byte_that_is_no_utf_8_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"[\n\n\xff]")
    assert refusal(path) == ":3: not UTF-8 text, expected the JSON of cluster_job_log"


@pytest.mark.parametrize("said", ["true", '"1_0"'])
def test_gpus_of_a_lingjun_worker_are_no_yes_and_no_number_with_underscores(said: str, tmp_path: Path) -> None:
    (tmp_path / "job.csv").write_text("job_name,status,gmt_job_submitted,gmt_job_running,gmt_job_finished\n")
    cell = f'{{"nvidia.com/gpu": {said}}}'.replace('"', '""')
    (tmp_path / "worker.csv").write_text(f'job_name,worker_name,host_ip,RES\nj,w,h,"{cell}"\n')
    with pytest.raises(TraceError, match=r"worker\.csv:2: RES has nvidia\.com/gpu"):
        lingjun.read(tmp_path)


def test_json_with_a_number_of_thousands_of_digits_is_refused(written: Writer) -> None:
    path = written("log", json.dumps([JOB]).replace('"a"', "9" * 5000))
    assert refusal(path).startswith(":1: damaged JSON (a number of too many digits)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("job_id," + "x" * 140_000 + "\n1,2\n", ":1: damaged line (field larger than field limit (131072))"),
        ("x" * 2**20 + ",y\n", ":1: a line of more than 1048576 characters, expected a CSV file"),
        ("# c\n" * 10_001 + OWN, ":10001: too many comments, expected at most 10000 lines of them"),
        (f"# skipped {'9' * 5000}: no GPUs\n{OWN}", ":1: the count of what was skipped is too large"),
        (ITP + "a,0,1e29,1\n", ":2: duration is 1e29, expected at most 1e+15"),
        (ITP + "a,0,1," + "9" * 5000 + "\n", ":2: num_gpu is '999"),
        (ITP + 'a,0,"1\x1b[31m",1\n', r":2: duration is '1\x1b[31m', expected a number"),
    ],
)
def test_a_table_beyond_a_limit_is_refused_with_it(written: Writer, text: str, message: str) -> None:
    assert refusal(written("t.csv", text)).startswith(message)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "a pipe and no regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "a device and no regular file"),
    ],
)
def test_a_trace_that_never_ends_is_not_read(make: Callable[[Path], object], why: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    make(path)
    assert refusal(path).startswith(f": {why}, expected a trace of at most 1073741824 bytes")


def test_a_sparse_file_larger_than_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    with path.open("wb") as file:
        file.truncate(2**31)
    assert refusal(path).startswith(": 2147483648 bytes, more than 1073741824 bytes")


def test_json_is_read_as_a_whole_and_may_be_smaller_only(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("[")
    os.truncate(path, 2**29)
    with pytest.raises(TraceError, match="536870912 bytes, more than 268435456 bytes, expected JSON of at most"):
        philly.read(path)


def test_damage_beyond_the_first_block_is_found_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes((ITP + "a,0,1,1\n" * 200_000).encode() + b"b,0,1,\xff\n")
    assert refusal(path).startswith(":200002: not UTF-8 text")


@pytest.mark.parametrize("said", ["9" * 400, "1e999", "1e300", "-1"])
def test_gpus_of_a_lingjun_worker_are_a_bounded_number(said: str, tmp_path: Path) -> None:
    (tmp_path / "job.csv").write_text(
        "job_name,status,gmt_job_submitted,gmt_job_running,gmt_job_finished\n"
        "j,Succeeded,2023-07-15 00:50:00,2023-07-15 00:51:00,2023-07-15 01:50:00\n"
    )
    cell = json.dumps({"nvidia.com/gpu": 0}).replace("0", said).replace('"', '""')
    (tmp_path / "worker.csv").write_text(f'job_name,worker_name,host_ip,RES\nj,w,h,"{cell}"\n')
    with pytest.raises(TraceError, match=r"worker\.csv:2: RES (has|is no JSON)"):
        lingjun.read(tmp_path)


def test_labels_of_switches_may_end_in_thousands_of_digits(tmp_path: Path) -> None:
    path = tmp_path / "topo.csv"
    path.write_text(f"ip,DSW,PSW,ASW\na,D1,P1,A{'9' * 5000}\nb,D1,P1,A2\n")
    assert len(lingjun.read_topology(path)) == 2


def slowly_unique(name: str, taken: set[str]) -> str:
    """As :func:`unique` was said to work: the first free number."""
    chosen, number = name, 1
    while chosen in taken:
        number += 1
        chosen = f"{name}#{number}"
    taken.add(chosen)
    return chosen


@given(st.lists(st.sampled_from(["a", "b", "a#2", "a#2#2", "b#3"]), max_size=40))
def test_names_are_made_unique_with_the_first_free_number(names: list[str]) -> None:
    taken: dict[str, int] = {}
    slow: set[str] = set()
    assert [unique(name, taken) for name in names] == [slowly_unique(name, slow) for name in names]


class Counting(dict[str, int]):
    """Counts how often it is asked whether it has a key."""

    asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)


def test_equal_names_take_a_search_each_that_does_not_grow() -> None:
    taken = Counting()
    named: Iterator[str] = (unique("a", taken) for _ in range(1000))
    assert len(set(named)) == 1000
    assert taken.asked <= 3 * 1000
