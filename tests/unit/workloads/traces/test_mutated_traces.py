"""Whatever happens to a small valid trace, it is read, or refused in one line that names its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workloads.traces.registry import FORMATS, read_trace
from workloads.traces.simulators import pollux_measurements
from workloads.traces.trace import Trace, TraceError

SLURM: Final = "2020-04-01 00:01:00,2020-04-01 00:02:00,2020-04-01 01:02:00"
ATTEMPT: Final = {
    "start_time": "2017-10-07 01:12:09",
    "end_time": "2017-10-07 02:12:09",
    "detail": [{"ip": "m1", "gpus": ["gpu0"]}],
}
PHILLY: Final = {"status": "Pass", "vc": "a", "jobid": "j", "user": "u", "submitted_time": "2017-10-07 01:12:00"}
SPEEDS: Final = {"v100": {"('ResNet', 2)": {"null": 2.0, "('ResNet', 2)": [1.0, 1.0]}, "('A3C', 1)": {"null": 1}}}


@dataclass(frozen=True)
class Example:
    """A valid trace of a format: its files by their paths in a folder, and which of them, or what folder, is read."""

    format: str
    files: Mapping[str, str]
    read: str


EXAMPLES: Final = (
    Example(
        "lingjun",
        {
            "job.csv": "job_name,status,gmt_job_submitted,gmt_job_running,gmt_job_finished,gmt_job_stopped,"
            "job_restart_times\nj,Succeeded,2023-07-15 00:50:00,2023-07-15 00:51:00,2023-07-15 01:50:00,,1\n",
            "worker.csv": 'job_name,worker_name,host_ip,RES\nj,w,h,"{""nvidia.com/gpu"": 8, ""cpu"": 4}"\n',
            "topo.csv": "ip,DSW,PSW,ASW\nh,D1,P1,A1\ni,D1,P1,A2\n",
        },
        "",
    ),
    Example("philly", {"log": json.dumps([PHILLY | {"attempts": [ATTEMPT]}], indent=1)}, "log"),
    Example("philly", {"p.csv": "timestamp,duration,num_gpus,cluster\n2017-10-03 05:22:49,100,4,vc\n"}, "p.csv"),
    Example(
        "alibaba-v2020",
        {
            "pai_task_table.csv": "j,worker,2,Terminated,100,200,600,29,50,V100\nj,ps,1,Terminated,100,300,6,2,,\n",
            "pai_job_table.csv": "j,i,u,Terminated,90,310\n",
            "pai_group_tag_table.csv": "i,u,V100,g,bert\n",
        },
        "",
    ),
    Example(
        "alibaba-v2023",
        {
            "pods.csv": "name,num_gpu,gpu_milli,pod_phase,creation_time,deletion_time,scheduled_time\n"
            "p,1,500,Succeeded,0,200,10\nq,0,0,Running,0,200,10\n"
        },
        "pods.csv",
    ),
    Example(
        "acme",
        {
            "trace_seren.csv": "job_id,user,node_num,gpu_num,type,state,submit_time,start_time,end_time,duration,"
            f"gpu_time\na,u,1,8,Evaluation,COMPLETED,{SLURM},3600,1\n"
        },
        "trace_seren.csv",
    ),
    Example(
        "helios",
        {
            "Venus/cluster_log.csv": "job_id,user,vc,gpu_num,node_num,state,submit_time,start_time,end_time,duration\n"
            f"a,u,vc,8,1,COMPLETED,{SLURM},3600\n"
        },
        "Venus/cluster_log.csv",
    ),
    Example("itp", {"c.csv": "job_id,submission_time,duration,num_gpu\na,0,100,8\nb,1,10,1\n"}, "c.csv"),
    Example(
        "muri",
        {
            "m.csv": "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
            "resource_time_0\n7,4,2500,1000,bert,4,191000,0,190,0.5\n"
        },
        "m.csv",
    ),
    Example(
        "tiresias",
        {"t.csv": "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,8,30,133,vgg11,147,23\n"},
        "t.csv",
    ),
    Example(
        "pollux",
        {
            "w/w.csv": "name,time,application,num_replicas,batch_size\nn,0,net,2,16\nm,9,net,8,8\n",
            "traces/net/placements.csv": "placement,local_bsz,step_time,sync_time\n1,8,0.5,0.0\n2,8,0.6,0.1\n",
            "traces/net/scalability.csv": "num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,4,8,1.0,0.5\n",
            "traces/net/validation-8.csv": "progress,iteration,grad_sqr,grad_var\n10,10,1,3\n20,20,1,3\n",
            "traces/net/validation-16.csv": "progress,iteration,grad_sqr,grad_var\n10,10,1,3\n20,20,0,3\n",
        },
        "w/w.csv",
    ),
    Example(
        "gavel",
        {
            "a.trace": "ResNet\tpython3 train.py\t--steps\t0\t600\t2\t1.0\t-1.0\t5.5\n",
            "simulation_throughputs.json": json.dumps(SPEEDS, indent=1),
        },
        "a.trace",
    ),
    Example(
        "testbed",
        {
            "t.csv": "# name: a\n# skipped 3: no GPUs\nname,submit_s,duration_s,gpus,hosts,attempts,min_gpus,max_gpus,"
            "opportunistic\na,0,1,2,h0;h1,2,1,4,yes\n"
        },
        "t.csv",
    ),
)
NASTY: Final = (
    *("", " ", "-1", "0", "0.5", "1e-320", "1e-5", "1e15", "1e999", "nan", "NaN", "inf", "-inf", "Infinity", "null"),
    *("9" * 400, "9" * 5000, "1_0", "²", "٣", "0x1", "true", "[]", "{}", '"', "'", "\x00", "[" * 3000, "\\ud800"),
    *("9999-12-31 23:59:59", "0001-01-01 00:00:00+23:59", "..", ".", "a" * 300, "é", ",", ";", "\n", "\r", "#", "]"),
)
"""What stands in the place of a cell or of a part of the text."""


@st.composite
def mutated(draw: st.DrawFn, text: str) -> bytes:
    """The text after one to three changes: bytes changed, deleted or doubled, parts or cells replaced, or all gone."""
    said = text.encode()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(0, len(said) - 1)))
        end = min(len(said), start + draw(st.integers(1, 20)))
        kind = draw(st.sampled_from(("cell", "cell", "byte", "delete", "double", "insert", "cut", "only-header")))
        if kind == "cell":
            start, end = cell_at(said, start)
        new = {
            "byte": draw(st.binary(min_size=1, max_size=2)),
            "delete": b"",
            "double": said[start:end] * 2,
            "cut": b"",
        }.get(kind, draw(st.sampled_from(NASTY)).encode())
        if kind == "only-header":
            said = said.partition(b"\n")[0] + b"\n"
        else:
            said = said[:start] + new + (b"" if kind == "cut" else said[start if kind == "insert" else end :])
    return said


def cell_at(said: bytes, place: int) -> tuple[int, int]:
    """Where the cell, or the value of JSON, that ``place`` belongs to begins and ends."""
    borders = b',\t\n:[]{};"'
    start = place
    while start > 0 and said[start - 1] not in borders:
        start -= 1
    end = place
    while end < len(said) and said[end] not in borders:
        end += 1
    return start, end


def written(example: Example, folder: Path, changed: Mapping[str, bytes]) -> Path:
    for name, text in example.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(changed.get(name, text.encode()))
    return folder / example.read


def read_or_refused(path: Path, folder: Path, format: str | None) -> Trace | None:
    pollux_measurements.measurements.cache_clear()
    try:
        return read_trace(path, format)
    except TraceError as error:
        assert len(str(error).splitlines()) == 1
        assert str(error).startswith(str(folder))
        return None


def can_be_used(trace: Trace) -> bool:
    """Whether a trace that was read has jobs of sensible size and a summary that can be written."""
    sensible = all(0 < job.duration_s <= 1e15 and 1 <= job.gpus <= 1e15 for job in trace.jobs)
    return sensible and bool(trace.summary.encode())


def test_there_is_an_example_of_every_format(tmp_path: Path) -> None:
    assert {example.format for example in EXAMPLES} == set(FORMATS)
    for number, example in enumerate(EXAMPLES):
        path = written(example, tmp_path / str(number), {})
        assert read_trace(path) == read_trace(path, example.format)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.format}-{example.read}")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_mutated_trace_is_read_or_refused_in_one_line(example: Example, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(example.files)))
    changed = data.draw(mutated(example.files[name]))
    with TemporaryDirectory() as folder:
        path = written(example, Path(folder), {name: changed})
        read = read_or_refused(path, Path(folder), data.draw(st.sampled_from((example.format, None))))
        assert read is None or can_be_used(read)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.format}-{example.read}")
def test_a_nasty_cell_is_read_or_refused_in_one_line(example: Example, tmp_path: Path) -> None:
    path = written(example, tmp_path, {})
    for name, text in example.files.items():
        said = text.encode()
        for start, end in sorted({cell_at(said, place) for place in range(len(said))}):
            for nasty in NASTY:
                (tmp_path / name).write_bytes(said[:start] + nasty.encode() + said[end:])
                read = read_or_refused(path, tmp_path, example.format)
                assert read is None or can_be_used(read), (name, said[start:end], nasty)
        (tmp_path / name).write_bytes(said)
