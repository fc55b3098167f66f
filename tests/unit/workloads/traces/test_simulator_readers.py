"""Muri, Tiresias, Gavel and Pollux: what a line of their simulators' traces becomes, and how a wrong one is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from workloads.traces.registry import read_trace, recognise
from workloads.traces.trace import TraceError

Writer = Callable[[str, str], Path]

MURI = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0\n"
TIRESIAS = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
POLLUX = "name,time,application,num_replicas,batch_size\n"
GAVEL = "ResNet\tpython3 train.py\t--steps\t0\t600\t2\t1.0\t-1.0\t5.5\n"
PLACEMENTS = "placement,local_bsz,step_time,sync_time\n1,8,0.5,0.0\n1,16,0.9,0.0\n2,8,0.6,0.1\n11,8,0.7,0.2\n"
SCALABILITY = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,4,8,1.0,0.5\n8,8,8,2.0,1.5\n"
EPOCHS = "progress,iteration,metric,grad_sqr,grad_var\n10,10,1,1,3\n20,20,2,1,3\n"


def application(written: Writer) -> None:
    """Of two batches; the gain of twice the batch is 4 / 2.5."""
    written("traces/net/placements.csv", PLACEMENTS)
    written("traces/net/scalability.csv", SCALABILITY)
    written("traces/net/validation-8.csv", EPOCHS)
    written("traces/net/validation-16.csv", EPOCHS)


def refusal(path: Path) -> str:
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    return str(caught.value).removeprefix(str(path))


def test_muris_times_are_milliseconds_and_a_job_runs_its_iterations(written: Writer) -> None:
    path = written("trace.csv", MURI + "7,4,2500,1000,bert,4,191000,0,190,0.5\n8,1,500,10,dqn,8,5000,0,490,1\n")
    trace = read_trace(path)
    assert [(job.name, job.submit_s, job.gpus, job.model) for job in trace.jobs] == [
        ("8", 0.0, 1, "dqn"),
        ("7", 2.0, 4, "bert"),
    ]
    assert [job.duration_s for job in trace.jobs] == pytest.approx([4.9, 190.0])


def test_tiresias_times_are_seconds(written: Writer) -> None:
    trace = read_trace(written("jobs.csv", TIRESIAS + "0,8,30,133,vgg11,147,23\n1,1,40,9,alexnet,12,3\n"))
    assert [(job.submit_s, job.duration_s, job.gpus, job.model) for job in trace.jobs] == [
        (0, 147, 8, "vgg11"),
        (10, 12, 1, "alexnet"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MURI + "0,4,0,ten,bert,4,1,0,190,1\n", ":2: iterations is 'ten', expected a number"),
        (MURI + "0,4,0\n", ":2: the line ends after 3 of 10 values, expected a whole line"),
        (MURI + "0,4,0,5,bert,4,abc,0,190,1\n", ":2: duration is 'abc', expected a number"),
        (MURI + "0,4,0,5,bert,4,-100,0,190,1\n", ":2: duration is -100, expected 0 or more"),
        (MURI + "0,4,0,1e15,bert,4,1,0,1e12,1\n", ":2: iterations x iteration_time is 1e+27, expected at most 1e+15"),
        (TIRESIAS + "0,1,0,x,vgg,10,1\n", ":2: iterations is 'x', expected a number"),
        (TIRESIAS + "0,1,0,9,vgg,10,y\n", ":2: interval is 'y', expected a number"),
        (TIRESIAS + "0,1.5,0,9,vgg,10,1\n", ":2: num_gpu is 1.5, expected a whole number"),
        (TIRESIAS + "0,1,-3,9,vgg,10,1\n", ":2: submit_time is -3, expected 0 or more"),
    ],
)
def test_a_damaged_table_names_its_line(written: Writer, text: str, message: str) -> None:
    assert refusal(written("t.csv", text)).startswith(message)


@pytest.mark.parametrize("lost", ["iteration_time", "iteration_time,resource_time_0"])
def test_milliseconds_of_a_table_of_muris_that_lacks_a_column_are_not_taken_for_seconds(
    written: Writer, lost: str
) -> None:
    header = MURI.replace(f",{lost}", "")
    row = "7,4,2500,1000,bert,4,191000,0" + ",1" * (2 - len(lost.split(","))) + "\n"
    said = refusal(written("t.csv", "# a comment\n" + header + row))
    assert said.startswith(":2: with the column ")
    assert "it is a table of Muri's, in milliseconds, but has no iteration_time, expected the columns job_id," in said


def test_a_table_of_muris_is_not_read_as_one_of_tiresias(written: Writer) -> None:
    path = written("t.csv", MURI + "7,4,2500,1000,bert,4,191000,0,190,0.5\n")
    with pytest.raises(TraceError, match="it is a table of Muri's, in milliseconds, expected the format muri"):
        read_trace(path, "tiresias")


def gavel(written: Writer, text: str, speeds: object = None) -> Path:
    found = {"v100": {"('ResNet', 2)": {"null": 2.0, "('ResNet', 2)": [1.0, 1.0]}}} if speeds is None else speeds
    written("scheduler/simulation_throughputs.json", json.dumps(found))
    return written("scheduler/traces/generated/a.trace", text)


def test_gavels_steps_take_as_long_as_was_measured(written: Writer) -> None:
    path = gavel(written, GAVEL + GAVEL.replace("python3 train.py", "python3 train.py\t/models").replace("5.5", "2"))
    assert recognise(path) == "gavel"
    jobs = read_trace(path).jobs
    assert [(job.name, job.submit_s, job.duration_s, job.gpus, job.model) for job in jobs] == [
        ("gavel-2", 0.0, 300.0, 2, "ResNet"),
        ("gavel-1", 3.5, 300.0, 2, "ResNet"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GAVEL + "ResNet\t1\n", ":2: the line has 2 cells, expected 9, separated by tabs: job_type"),
        (
            GAVEL.replace("\t2\t1.0", "\t4\t1.0"),
            ":1: simulation_throughputs.json has no speed of 'ResNet' on 4 v100 GPUs",
        ),
        (GAVEL.replace("600", "some"), ":1: total_steps is 'some', expected a number"),
    ],
)
def test_a_damaged_trace_of_gavel_names_its_line(written: Writer, text: str, message: str) -> None:
    assert refusal(gavel(written, text)).startswith(message)


def test_gavel_without_its_throughputs_says_what_is_missing(written: Writer) -> None:
    path = written("a.trace", GAVEL)
    assert (
        refusal(path)
        == ": the trace says steps, not seconds, expected simulation_throughputs.json in a folder above it"
    )
    with pytest.raises(TraceError, match=r"simulation_throughputs\.json: no speeds on v100, expected an object 'v100'"):
        read_trace(gavel(written, GAVEL, {}))


@pytest.mark.parametrize(
    ("speeds", "message"),
    [
        (
            '{"v100": {"(\'ResNet\', 2)": {"null": NaN}}}',
            "the speed alone is nan, expected 0 to 1e+15 steps per second",
        ),
        ('{"v100": {"(\'ResNet\', 2)": {"null": Infinity}}}', "the speed alone is inf, expected 0 to 1e+15 steps"),
        ('{"v100": {"(\'ResNet\', 2)": {"null": %s}}}' % ("9" * 400), "the speed alone is 9999"),
        ('{"v100": {"(\'ResNet\', 2)": {"null": %s}}}' % ("9" * 5000), "damaged JSON (a number of too many digits)"),
        ('{"v100": {"(\'ResNet\', ²)": {"null": 1}}}', "the job type \"('ResNet', ²)\", expected one such as"),
        ('{"v100": {"(\'ResNet\', %s)": {"null": 1}}}' % ("9" * 5000), "the job type \"('ResNet', 9999"),
        ("[" * 100_000, "cannot be read (nested too deeply), expected steps per second by job type"),
    ],
)
def test_damaged_speeds_of_gavel_name_their_file(written: Writer, speeds: str, message: str) -> None:
    path = gavel(written, GAVEL)
    file = written("scheduler/simulation_throughputs.json", speeds)
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)


def test_steps_at_a_speed_next_to_nothing_take_too_long(written: Writer) -> None:
    path = gavel(written, GAVEL, {"v100": {"('ResNet', 2)": {"null": 1e-320}}})
    assert refusal(path) == ":1: total_steps / speed is inf, expected at most 1e+15"


def test_a_pollux_job_runs_its_epochs_at_the_measured_speed(written: Writer) -> None:
    application(written)
    trace = read_trace(written("workloads/w.csv", POLLUX + "net-0,60,net,2,16\nnet-1,90,net,1,8\n"))
    assert [(job.name, job.submit_s, job.gpus, job.model) for job in trace.jobs] == [
        ("net-0", 0.0, 2, "net"),
        ("net-1", 30.0, 1, "net"),
    ]
    each = 10 / (4 / 2.5) * 0.6  # an epoch with local batches of 8 on two GPUs of a server; it ends at a whole second
    assert trace.jobs[0].duration_s == 2 * round(each)
    assert trace.jobs[1].duration_s == 2 * 10 * 0.5


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,0,other,1,8", ":2: application 'other' is not measured, expected a folder of measurements "),
        ("a,0,net,,8", ":2: time, num_replicas or batch_size is missing, expected all three"),
        ("a,0,net,1,99", ":2: batch_size is 99, expected 8 to 16, as net is measured"),
        ("a,0,net,64,16", ":2: num_replicas is 64 for batch_size 16, expected at most 16: each GPU has a sample"),
        (f"a,0,{'a' * 300},1,8", f":2: application '{'a' * 300}' is not measured, expected a folder of measurements "),
        ("a,0,..,1,8", ":2: application '..' is not measured, expected a folder of measurements "),
    ],
)
def test_a_damaged_workload_of_pollux_names_its_line(written: Writer, row: str, message: str) -> None:
    application(written)
    assert refusal(written("workloads/w.csv", POLLUX + row + "\n")).startswith(message)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "validation-8.csv",
            EPOCHS.replace("1,3", "0,0"),
            ":2: grad_sqr and grad_var are both 0, expected one of them",
        ),
        ("validation-8.csv", EPOCHS.replace("20,20", "9,20"), ":3: progress is 9, expected at least 10, that of the"),
        ("validation-8.csv", EPOCHS.replace("20,20", "20,9"), ":3: iteration is 9, expected at least 10, that of the"),
        (
            "validation-8.csv",
            EPOCHS.replace("1,3", "1e200,3"),
            ":2: grad_sqr is '1e200', expected a number of at least",
        ),
        ("validation-².csv", EPOCHS, ": '²' is no batch, expected a name such as validation-128.csv"),
        ("validation-0.csv", EPOCHS, ": '0' is no batch, expected a name such as validation-128.csv"),
        ("placements.csv", PLACEMENTS.replace("\n2,", "\n²,"), ":4: placement is '²', expected a digit per server"),
        ("placements.csv", PLACEMENTS.replace("1,8,", "1,0.5,"), ":2: local_bsz is 0.5, expected 1 to 1000000"),
        ("placements.csv", PLACEMENTS.replace("1,16,", "1,1e15,"), ":3: local_bsz is 1e15, expected 1 to 1000000"),
        (
            "placements.csv",
            PLACEMENTS.replace("0.6,0.1", "0.6,9"),
            ":4: sync_time is 9, expected at most the step_time",
        ),
    ],
)
def test_a_measurement_that_cannot_be_is_refused(written: Writer, name: str, text: str, message: str) -> None:
    application(written)
    bad = written(f"traces/net/{name}", text)
    with pytest.raises(TraceError) as caught:
        read_trace(written("workloads/w.csv", POLLUX + "a,0,net,1,8\n"))
    assert str(caught.value).startswith(f"{bad}{message}")


def test_measured_steps_without_end_are_no_run_time(written: Writer) -> None:
    application(written)
    written("traces/net/placements.csv", PLACEMENTS.replace("0.5", "1e15"))
    said = refusal(written("workloads/w.csv", POLLUX + "a,0,net,1,8\n"))
    assert said == ":2: the run time that follows from the measurements is 2e+16, expected at most 1e+15"


def test_a_damaged_measurement_names_its_own_file_and_line(written: Writer) -> None:
    application(written)
    bad = written("traces/net/placements.csv", PLACEMENTS + "1x,8,0.5,0.1\n")
    with pytest.raises(TraceError, match=r"placements\.csv:6: placement is '1x', expected a digit per server"):
        read_trace(written("workloads/w.csv", POLLUX + "a,0,net,1,8\n"))
    assert bad.exists()
