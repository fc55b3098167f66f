"""Philly, ITP, Helios, Acme and Alibaba: what each row becomes, and what is counted instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workloads.traces import acme, alibaba, helios, itp, philly
from workloads.traces.trace import TraceError

Writer = Callable[[str, str], Path]

PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"
ITP = "job_id,submission_time,duration,num_gpu\n"
HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
ACME = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


def philly_job(**changes: Any) -> dict[str, Any]:
    attempts = [
        {
            "start_time": "2017-10-07 01:12:09",
            "end_time": "2017-10-07 01:13:09",
            "detail": [{"ip": "m4", "gpus": ["g0"]}],
        },
        {
            "start_time": "2017-10-07 01:14:00",
            "end_time": "2017-10-07 01:15:00",
            "detail": [{"ip": "m1", "gpus": ["g0", "g1"]}, {"ip": "m2", "gpus": ["g0", "g1"]}],
        },
    ]
    job = {
        "status": "Pass",
        "vc": "v",
        "jobid": "a",
        "attempts": attempts,
        "submitted_time": "2017-10-07 01:11:39",
        "user": "u",
    }
    return {**job, **changes}


def test_the_filtered_philly_rows_are_sorted_by_submission(written: Writer) -> None:
    path = written("p.csv", PHILLY + "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 07:00:55,5.0,8,40.0,6214e9\n")
    trace = philly.read(path)
    assert [(job.name, job.submit_s, job.duration_s, job.gpus, job.virtual_cluster) for job in trace.jobs] == [
        ("philly-2", 0, 5, 8, "6214e9"),
        ("philly-1", 60, 66, 1, "11cb48"),
    ]


def test_a_philly_job_ran_as_long_as_its_attempts_where_the_last_one_was(written: Writer) -> None:
    job = philly.read(written("log", json.dumps([philly_job()]))).jobs[0]
    assert (job.duration_s, job.gpus, job.hosts, job.attempts, job.user) == (120, 4, ("m1", "m2"), 2, "u")


def test_philly_attempts_that_never_ran_have_no_part_in_the_time_of_the_job(written: Writer) -> None:
    first, last = philly_job()["attempts"]
    never_ran = {"start_time": None, "end_time": "2017-10-07 01:13:30", "detail": []}
    tried = [philly_job(attempts=[first, never_ran, {**never_ran, "end_time": "None"}, last])]
    job = philly.read(written("log", json.dumps(tried))).jobs[0]
    assert (job.duration_s, job.attempts) == (120, 2)


def test_philly_jobs_that_cannot_be_used_are_counted(written: Writer) -> None:
    attempt = philly_job()["attempts"][0]
    jobs = [
        philly_job(status="Killed"),
        philly_job(attempts=[]),
        philly_job(attempts=[{**attempt, "end_time": None}]),
        philly_job(attempts=[{**attempt, "detail": []}]),
        philly_job(submitted_time="None"),
        philly_job(attempts=[{**attempt, "end_time": "2017-10-07 01:00:00"}]),
        philly_job(status="Odd"),
    ]
    trace = philly.read(written("log", json.dumps(jobs, indent=1)))
    assert [job.fate for job in trace.jobs] == ["kill"]
    assert trace.skipped == {
        "never ran": 1,
        "still running": 1,
        "no GPUs": 1,
        "no submission time": 1,
        "ended before it began": 1,
        "in another state": 1,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[\n{"status": "Pass"}\n]',
            ":2: an entry is no job, expected the keys status, jobid, attempts, submitted_time",
        ),
        (json.dumps([philly_job()])[:-1], ":1: the list of jobs is cut short, expected ',' or ']'"),
        ("[" + json.dumps(philly_job()) + ",\n" + json.dumps(philly_job())[:60], ":2: damaged JSON"),
        (json.dumps([philly_job(submitted_time="noon")]), ":1: submitted_time is 'noon', expected a time such as"),
        (json.dumps([philly_job(attempts=3)]), ":1: attempts is no list of attempts"),
        ("[]", ": there are no jobs, expected at least one job that ran on GPUs"),
        ("[", ":1: damaged JSON"),
    ],
)
def test_damaged_philly_json_names_its_line(written: Writer, text: str, message: str) -> None:
    path = written("log", text)
    with pytest.raises(TraceError) as caught:
        philly.read(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_negative_duration_is_refused_and_none_at_all_is_counted(written: Writer) -> None:
    with pytest.raises(TraceError, match=r"c\.csv:3: duration is -5, expected 0 or more"):
        itp.read(written("c.csv", ITP + "a,0,10,1\nb,5,-5,1\n"))
    trace = itp.read(written("c.csv", ITP + "a,0,10,1\nb,5,0,1\nc,5,,1\nd,5,1,0\ne,5,1,\n"))
    assert len(trace.jobs) == 1
    assert trace.skipped == {"ran for no time": 1, "no end time": 1, "no GPUs": 1, "unknown GPUs": 1}


def test_a_trace_without_a_single_usable_job_says_why(written: Writer) -> None:
    with pytest.raises(TraceError, match=r"c\.csv: no job can be used \(1 no GPUs\), expected at least one job"):
        itp.read(written("c.csv", ITP + "a,0,10,0\n"))


def test_itp_clusters_of_a_folder_share_their_clock(written: Writer) -> None:
    written("two/cluster02.csv", ITP + "a,100,10,1\n")
    folder = written("two/cluster01.csv", ITP + "a,150,10,64\n").parent
    jobs = itp.read(folder).jobs
    assert [(job.name, job.submit_s, job.virtual_cluster) for job in jobs] == [
        ("a#2", 0, "cluster02"),
        ("a", 50, "cluster01"),
    ]


def test_helios_states_become_fates_or_reasons(written: Writer) -> None:
    days = "2020-06-09 18:41:01,2020-06-09 18:42:01,2020-06-09 18:43:01,60,60"
    rows = [
        f"{number},u,vc1,4,16,1,{state},{days}"
        for number, state in enumerate(
            ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "SUSPENDED", "RUNNING", "PENDING"]
        )
    ]
    rows.append("8,u,vc1,0,16,1,COMPLETED," + days)
    rows.append("9,u,vc1,4,16,1,CANCELLED,2020-06-09 18:41:01,,,0,0")
    rows.append("10,u,vc1,4,16,1,FAILED,2020-06-09 18:41:01,2020-06-09 18:40:01,2020-06-09 18:43:01,180,0")
    trace = helios.read(written("Venus/cluster_log.csv", HELIOS + "\n".join(rows)))
    assert trace.name == "helios-venus"
    assert [(job.fate, job.duration_s) for job in trace.jobs] == [
        (fate, 60) for fate in ("pass", "kill", "fail", "fail", "fail")
    ]
    assert trace.skipped == {
        "in another state": 1,
        "still running": 1,
        "never ran": 2,
        "no GPUs": 1,
        "ran before it was submitted": 1,
    }


def test_acme_run_times_leave_the_queue_out(written: Writer) -> None:
    row = (
        "dlc,u1,8,64,960,Pretrain,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
        "2023-05-17 11:01:16+00:00,18,10.0,1152.0\n"
    )
    job = acme.read(written("trace_kalos.csv", ACME + row)).jobs[0]
    assert (job.duration_s, job.gpus, job.model, job.fate) == (8, 64, "Pretrain", "fail")


def test_pai_tasks_are_added_up_to_whole_gpus(written: Writer) -> None:
    tasks = written(
        "pai/pai_task_table.csv",
        (
            "j,ps,1.0,Terminated,100.0,200.0,600.0,29.3,,\n"
            "j,worker,3.0,Terminated,110.0,210.0,600.0,29.3,50.0,T4\n"
            "cpu,worker,1.0,Terminated,100.0,200.0,600.0,29.3,0.0,\n"
            "run,worker,1.0,Running,100.0,,600.0,29.3,100.0,T4\n"
            "what,worker,,Terminated,100.0,200.0,600.0,29.3,100.0,T4\n"
            "wait,worker,1.0,Waiting,,,600.0,29.3,100.0,T4\n"
        ),
    )
    written("pai/pai_job_table.csv", "j,id1,user1,Terminated,90.0,210.0\nlost,id2,user1,Waiting,90.0,\n")
    written("pai/pai_group_tag_table.csv", "id1,user1,,g,bert\n")
    trace = alibaba.read_v2020(tasks.parent)
    job = trace.jobs[0]
    assert (job.name, job.gpus, job.duration_s, job.user, job.model) == ("j", 2, 100, "user1", "bert")
    assert trace.skipped == {
        "no GPUs": 1,
        "still running": 1,
        "unknown GPUs": 1,
        "never ran": 1,
        "job without tasks": 1,
    }
    assert "1 jobs" in trace.notes[0]


def test_pai_tasks_alone_are_enough_and_may_have_a_header(written: Writer) -> None:
    header = ",".join(alibaba.TASKS)
    path = written("pai_task_table.csv", f"{header}\nj,worker,2.0,Failed,5.0,7.0,6.0,2.0,100.0,T4\n")
    job = alibaba.read_v2020(path).jobs[0]
    assert (job.gpus, job.duration_s, job.fate) == (2, 2, "fail")


def test_pods_become_jobs_and_those_never_scheduled_are_counted(written: Writer) -> None:
    rows = (
        "p0,1,1,8,1000,,Burstable,Succeeded,100,200,110\n"
        "p1,1,1,1,460,,LS,Running,100,200,100\n"
        "p2,1,1,1,1000,,LS,Pending,100,200,\n"
        "p3,1,1,0,0,,LS,Running,100,200,100\n"
        "p4,1,1,1,1000,,LS,Running,100,,100\n"
    )
    trace = alibaba.read_v2023(written("openb_pod_list_default.csv", PODS + rows))
    assert [(job.name, job.gpus, job.duration_s, job.fate) for job in trace.jobs] == [
        ("p0", 8, 90, "pass"),
        ("p1", 1, 100, "kill"),
    ]
    assert trace.skipped == {"never ran": 1, "no GPUs": 1, "still running": 1}
    assert trace.notes[0].startswith("1 pods ask for a part of a GPU")
