"""Lingjun's folder: GPUs from the workers, and a reason for every job that is left out."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from workloads.traces import lingjun
from workloads.traces.trace import TraceError

JOB = [
    "job_name",
    "status",
    "model",
    "user_id",
    "workspace_name",
    "job_restart_times",
    "gmt_job_submitted",
    "gmt_job_running",
    "gmt_job_stopped",
    "gmt_job_finished",
]
WORKER = ["id", "job_name", "worker_name", "replica_type", "host_ip", "RES"]


def table(columns: list[str], rows: list[list[str]], blanks: int = 0) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*columns, *(f"Unnamed: {number}" for number in range(blanks))])
    writer.writerows([*row, *[""] * blanks] for row in rows)
    return out.getvalue()


def job(
    name: str, running: str, finished: str, status: str = "Succeeded", submitted: str = "2023/07/15 00:50"
) -> list[str]:
    return [name, status, "GPT-13b", "u1", "w1", "1", submitted, running, "", finished]


def worker(job: str, name: str, host: str, gpus: object = 8) -> list[str]:
    return ["1", job, name, "Worker", host, f'{{"cpu": 90, "nvidia.com/gpu": {gpus}}}']


def folder(tmp_path: Path, jobs: list[list[str]], workers: list[list[str]], blanks: int = 98) -> Path:
    (tmp_path / "job.csv").write_text(table(JOB, jobs, blanks), "utf-8")
    (tmp_path / "worker.csv").write_text(table(WORKER, workers), "utf-8")
    return tmp_path


def test_a_job_has_the_gpus_and_hosts_of_its_workers(tmp_path: Path) -> None:
    jobs = [
        job("late", "2023/07/15 02:00", "2023/07/15 03:00", submitted="2023/07/15 01:50"),
        job("a", "2023/07/15 00:51", "2023/07/15 01:11"),
    ]
    workers = [worker("a", "w0", "h1"), worker("a", "w1", "h2"), worker("a", "m", "h9", 0)]
    workers.append(worker("late", "w0", "h1", 1))
    trace = lingjun.read(folder(tmp_path, jobs, workers))
    first, second = trace.jobs
    assert (first.name, first.submit_s, first.duration_s, first.gpus, first.hosts) == ("a", 0, 1200, 16, ("h1", "h2"))
    assert (first.model, first.user, first.virtual_cluster, first.attempts) == ("GPT-13b", "u1", "w1", 2)
    assert (second.name, second.submit_s, second.gpus) == ("late", 3600, 1)
    assert trace.skipped == {}


def test_every_job_that_cannot_be_used_is_counted_with_its_reason(tmp_path: Path) -> None:
    run, end = "2023/07/15 01:00", "2023/07/15 02:00"
    jobs = [
        job("good", run, end),
        job("cpu only", run, end),
        job("waiting", "", "", "Stopped"),
        job("now", run, "", "Running"),
        job("endless", run, "", "Failed"),
        job("early", "2023/07/15 00:40", end),
        job("backwards", end, run),
        job("odd", run, end, "Evicted"),
        ["" for _ in JOB],
    ]
    workers = [worker(row[0], "w", "h1") for row in jobs[:8] if row[0] != "cpu only"] + [worker("nobody", "w", "h1")]
    trace = lingjun.read(folder(tmp_path, jobs, workers))
    assert [item.name for item in trace.jobs] == ["good"]
    assert trace.skipped == {
        "no GPUs": 1,
        "never ran": 1,
        "still running": 1,
        "no end time": 1,
        "ran before it was submitted": 1,
        "ended before it began": 1,
        "in another state": 1,
        "empty row": 1,
        "worker of a job that job.csv does not name": 1,
    }


def test_a_job_within_one_minute_gets_half_of_it_and_a_note_says_so(tmp_path: Path) -> None:
    trace = lingjun.read(folder(tmp_path, [job("a", "2023/07/15 01:00", "2023/07/15 01:00")], [worker("a", "w", "h1")]))
    assert trace.jobs[0].duration_s == 30
    assert "1 jobs began and ended within a minute: 30 s assumed" in trace.notes


def test_the_stop_ends_a_job_that_has_no_finish(tmp_path: Path) -> None:
    stopped = ["a", "Stopped", "unknown", "", "", "", "2023/07/15 00:50", "2023/07/15 00:50", "2023/07/15 00:55", ""]
    trace = lingjun.read(folder(tmp_path, [stopped], [worker("a", "w", "h1")]))
    assert (trace.jobs[0].duration_s, trace.jobs[0].fate, trace.jobs[0].model) == (300, "kill", "")


def test_a_worker_started_again_counts_once_where_it_was_last(tmp_path: Path) -> None:
    path = folder(
        tmp_path, [job("a", "2023/07/15 01:00", "2023/07/15 02:00")], [worker("a", "w", "h1"), worker("a", "w", "h2")]
    )
    found = lingjun.read(path).jobs[0]
    assert (found.gpus, found.hosts) == (8, ("h2",))


def test_equal_names_are_kept_apart(tmp_path: Path) -> None:
    jobs = [job("a", "2023/07/15 01:00", "2023/07/15 02:00")] * 2
    assert [item.name for item in lingjun.read(folder(tmp_path, jobs, [worker("a", "w", "h1")])).jobs] == ["a", "a#2"]


def test_hosts_that_the_topology_lacks_are_reported(tmp_path: Path) -> None:
    path = folder(
        tmp_path, [job("a", "2023/07/15 01:00", "2023/07/15 02:00")], [worker("a", "w", "h1"), worker("a", "x", "h2")]
    )
    (path / "topo.csv").write_text("ip,DSW,PSW,ASW\nh1,G6,P8,S1\n", "utf-8")
    assert lingjun.read(path).notes == ("1 of 2 workers ran on hosts that topo.csv does not list",)


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ("{bad", "RES is no JSON with numbers"),
        ('{"nvidia.com/gpu": "many"}', "RES is no JSON with numbers"),
        ('{"nvidia.com/gpu": -8}', "RES has nvidia.com/gpu -8"),
    ],
)
def test_damaged_resources_name_the_line_of_the_worker(tmp_path: Path, resources: str, message: str) -> None:
    row = ["1", "a", "w", "Worker", "h1", resources]
    path = folder(tmp_path, [job("a", "2023/07/15 01:00", "2023/07/15 02:00")], [worker("a", "v", "h1"), row])
    with pytest.raises(TraceError, match=rf"worker\.csv:3: {message}"):
        lingjun.read(path)


def test_a_folder_without_workers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.csv").write_text(table(JOB, []), "utf-8")
    with pytest.raises(TraceError, match=r"worker\.csv: cannot be read"):
        lingjun.read(tmp_path)
