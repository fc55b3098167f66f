"""Serving jobs in the flow engine: an M/D/1 queue, caches over the network, decode instances that are busy."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import yaml

from testbed.api import RunResult, load, prepare, run_scenario
from testbed.errors import BadInputError

FABRIC = {
    "kind": "clos", "hosts": 6, "gpus_per_host": 4, "nics_per_host": 4, "tors": 2, "aggregations": 1,
    "port_rate": "200Gbps", "fabric_rate": "2400Gbps",
}  # fmt: skip
CHAT: dict[str, Any] = {
    "name": "chat",
    "kind": "serving",
    "model": "llama3-8b",
    "prefill": {"tensor": 4},
    "decode": {"tensor": 4},
    "placement": ["h0", "h3"],
    "requests": {"rate": 11.0, "prompt": 4096, "output": 8, "count": 2000},
}
PREFILL_S = 0.04484284
"""Of 4,096 tokens on four H100."""


def scenario(path: Path, *jobs: dict[str, Any], **more: Any) -> str:
    measure = {"iterations": 1990, "warmup": 5, "time_limit": "10000s"}
    given = {"fabric": FABRIC, "jobs": list(jobs), "schedulers": ["ecmp"], "channels": 1, "measure": measure, **more}
    file = path / "scenario.yaml"
    file.write_text(yaml.safe_dump(given))
    return str(file)


def ran(path: Path, *jobs: dict[str, Any], **more: Any) -> RunResult:
    return run_scenario(scenario(path, *jobs, **more), engine="flow", out=path / "runs")


def requests(results: RunResult) -> list[dict[str, float]]:
    with (results.directory / "ecmp" / "requests.csv").open() as file:
        return [{key: float(value) for key, value in row.items() if key != "job"} for row in csv.DictReader(file)]


def test_requests_wait_as_in_a_queue_with_one_server_and_a_fixed_service_time(tmp_path: Path) -> None:
    """Each waits for the work that it finds (Lindley, 1952), to the last digit that a run keeps."""
    waited_s = 0.0
    before: dict[str, float] | None = None
    for row in requests(ran(tmp_path, CHAT)):
        if before is not None:
            gap_s = row["arrival_s"] - before["arrival_s"]
            waited_s = max(0.0, waited_s + PREFILL_S - gap_s)
        assert row["prefill_s"] == pytest.approx(PREFILL_S, rel=1e-6)
        assert row["first_token_s"] - row["arrival_s"] - PREFILL_S == pytest.approx(waited_s, abs=1e-5)
        before = row


def test_a_cache_takes_its_bytes_over_the_ports(tmp_path: Path) -> None:
    rows = requests(ran(tmp_path, CHAT))
    expected_s = 8 * 4096 * 131_072 / (4 * 200e9)
    assert min(row["cache_s"] - row["first_token_s"] for row in rows) == pytest.approx(expected_s, rel=1e-3)


def test_both_pools_are_busy_with_what_they_do(tmp_path: Path) -> None:
    (run,) = ran(tmp_path, CHAT).summary["runs"]
    (job,) = run["jobs"]
    times = job["serving"]
    assert job["iteration_s"]["mean"] == pytest.approx(1 / 11, rel=0.05)
    step_s = times["between_tokens_s"]["p50"]
    assert 0.0013 < step_s < 0.0016
    prefill = PREFILL_S * 11
    assert job["gpu_utilization"] == pytest.approx((prefill + 7 * step_s * 11) / 2, rel=0.06)
    assert times["first_token_s"]["p99"] > times["first_token_s"]["p50"] >= PREFILL_S


def test_caches_and_gradients_slow_each_other_down_where_they_share_links(tmp_path: Path) -> None:
    train = {"name": "train", "model": "bert", "placement": ["h1", "h4"], "compute": "20ms", "communication": "4GB"}
    slow = {**FABRIC, "fabric_rate": "400Gbps"}
    measure = {"iterations": 100, "warmup": 5, "time_limit": "10000s"}
    alone = ran(tmp_path, CHAT, fabric=slow, measure=measure).summary["runs"][0]["jobs"][0]
    beside = ran(tmp_path, CHAT, train, fabric=slow, measure=measure).summary["runs"][0]["jobs"][0]
    assert beside["serving"]["cache_s"]["p50"] > 1.2 * alone["serving"]["cache_s"]["p50"]
    assert beside["serving"]["first_token_s"]["p50"] < 2 * alone["serving"]["first_token_s"]["p50"]


def test_pools_of_several_instances_take_requests_in_turn(tmp_path: Path) -> None:
    pools = {"prefill": {"instances": 3, "tensor": 4}, "decode": {"instances": 2, "tensor": 4}}
    job = {**CHAT, **pools, "placement": ["h0", "h1", "h2", "h3", "h4"]}
    job["requests"] = {"rate": 30.0, "prompt": 4096, "output": 8, "count": 600}
    results = ran(tmp_path, job, measure={"iterations": 90, "warmup": 5, "time_limit": "1000s"})
    (experiment,) = prepare(scenario(tmp_path, job), engine="flow").experiments
    (built,) = experiment.jobs
    assert len(built.phases) == 3 * 6
    assert built.iterations == 100
    rows = requests(results)
    by_instance = [sorted(row["first_token_s"] for row in rows if row["request"] % 3 == place) for place in range(3)]
    for ends in by_instance:
        assert min(later - end for end, later in pairwise(ends)) >= PREFILL_S - 1e-6


def test_an_instance_on_several_hosts_adds_up_over_the_network(tmp_path: Path) -> None:
    job = {**CHAT, "prefill": {"tensor": 8}, "placement": ["h0", "h1", "h3"]}
    job["requests"] = {"rate": 1.0, "prompt": 4096, "output": 8, "count": 60}
    rows = requests(ran(tmp_path, job, measure={"iterations": 50, "warmup": 5, "time_limit": "1000s"}))
    sums = 2 * 32 * 4096 * 4096 * 2
    between_hosts_s = 8 * sums * 2 / 2 / (4 * 200e9)  # a ring of two hosts, each with four ports
    took_s = min(row["first_token_s"] - row["arrival_s"] for row in rows)
    assert took_s == pytest.approx(rows[0]["prefill_s"] + between_hosts_s, rel=0.02)


def test_prompts_of_a_trace_have_their_own_sizes(tmp_path: Path) -> None:
    lines = [
        f'{{"timestamp": {200 * number}, "input_length": {1000 + 100 * (number % 7)}, "output_length": 4}}'
        for number in range(60)
    ]
    (tmp_path / "trace.jsonl").write_text("\n".join(lines))
    job = {**CHAT, "requests": {"trace": "trace.jsonl"}}
    rows = requests(ran(tmp_path, job, measure={"iterations": 50, "warmup": 5, "time_limit": "1000s"}))
    for row in rows:
        assert row["prompt"] == 1000 + 100 * (row["request"] % 7)
        assert row["cache_s"] - row["first_token_s"] == pytest.approx(8 * row["prompt"] * 131_072 / 8e11, abs=5e-6)
        assert row["first_token_s"] - row["arrival_s"] == pytest.approx(row["prefill_s"], rel=1e-3)
    assert fmean(row["prefill_s"] for row in rows) < 0.03


def test_a_serving_job_gets_no_time_shift(tmp_path: Path) -> None:
    train = {"name": "train", "model": "bert", "placement": ["h1", "h4"], "compute": "50ms", "communication": "1GB"}
    slow = {**FABRIC, "fabric_rate": "400Gbps"}
    measure = {"iterations": 20, "warmup": 2, "time_limit": "1000s"}
    path = scenario(tmp_path, CHAT, train, fabric=slow, measure=measure, schedulers=["cassini", "crux"])
    results = run_scenario(path, engine="flow", out=tmp_path / "runs")
    for record in load(results.directory).records.values():
        assert all("chat" not in row.decision.shifts for row in record.decisions)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"requests": None}, "job 'chat' has no requests, expected requests: {rate: 2, prompt: 4096} or a trace"),
        ({"requests": {"rate": 2.0}}, "requests has no rate or no prompt, expected both, or a trace"),
        ({"requests": {"trace": "x", "rate": 2.0}}, "requests has a trace and rate, prompt or output, expected one"),
        ({"requests": {"trace": "nowhere.csv"}}, "nowhere.csv:1: cannot be read: No such file or directory"),
        ({"model": "bert"}, "job 'chat' answers requests, expected a large model such as llama3-8b"),
        ({"parallel": {"tensor": 2}}, "job 'chat' answers requests and has parallel, expected none"),
        ({"compute": "1s"}, "job 'chat' answers requests and has compute, expected none"),
        ({"kind": "training"}, "job 'chat' has prefill, expected kind: serving beside it"),
        ({"placement": ["h0", "h3", "h4"]}, "has 12 GPUs, its pools are for 8"),
        ({"placement": None, "gpus": 9}, "job 'chat' has 9 GPUs, expected 8: those of prefill and decode"),
        ({"decode": {"tensor": 8}, "placement": ["h0", "h3", "h4"]}, "decode instance 0 lies on 2 hosts, expected one"),
        ({"placement": ["h0:0,1", "h1:0,1", "h0:2,3", "h3:0,1"]}, "prefill and decode share host h0, expected hosts"),
        ({"prefill": {"tensor": 3}}, "prefill.tensor is 3, expected a divisor of 32 heads"),
        (
            {"decode": {"instances": 2, "tensor": 4}, "placement": ["h0", "h3", "h4"],
             "requests": {"rate": 1.0, "prompt": 8, "count": 1}},
            "has fewer requests than instances, expected at least 2",
        ),
        (
            {"requests": {"rate": 1.0, "prompt": 5_000_000}},
            "a request of 5000000 and 128 tokens does not fit into a decode instance, expected at most",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    job = {key: value for key, value in {**CHAT, **changes}.items() if value is not None}
    with pytest.raises(BadInputError) as raised:
        prepare(scenario(tmp_path, job), engine="flow")
    assert message in str(raised.value)
    assert "scenario.yaml:" in str(raised.value) or "nowhere.csv:" in str(raised.value)


def test_failures_beside_a_serving_job_are_refused(tmp_path: Path) -> None:
    failures = [{"at": "1s", "switch": "agg0"}]
    with pytest.raises(BadInputError, match="job 'chat' answers requests, expected no failures"):
        prepare(scenario(tmp_path, CHAT, failures=failures), engine="flow")


def test_what_a_serving_job_loses_to_others_is_never_negative(tmp_path: Path) -> None:
    """Decode instances are busy in the simulation of the job by itself, too."""
    train = {"name": "train", "model": "bert", "placement": ["h1", "h4"], "compute": "20ms", "communication": "4GB"}
    job = {**CHAT, "requests": {"rate": 11.0, "prompt": 4096, "output": 64, "count": 2000}}
    measure = {"iterations": 100, "warmup": 5, "time_limit": "10000s"}
    (run,) = ran(tmp_path, job, train, fabric={**FABRIC, "fabric_rate": "400Gbps"}, measure=measure).summary["runs"]
    loss = run["jobs"][0]["loss"]
    assert loss["others_gpu_s"] >= 0.0
    assert loss["alone_gpu_s"] == pytest.approx(sum(run["jobs"][0]["gpu_idle_s"].values()), rel=0.05)


def test_more_messages_than_a_scenario_may_have_are_refused(tmp_path: Path) -> None:
    pools = {"prefill": {"instances": 61, "tensor": 8}, "decode": {"instances": 67, "tensor": 8}}
    fabric = {**FABRIC, "hosts": 128, "gpus_per_host": 8, "nics_per_host": 8}
    job = {**CHAT, **pools, "placement": [f"h{place}" for place in range(128)], "channels": 32}
    job["requests"] = {"rate": 1.0, "prompt": 8, "output": 2, "count": 5000}
    with pytest.raises(BadInputError, match="too many messages, expected at most 1000000"):
        prepare(scenario(tmp_path, job, fabric=fabric), engine="flow")
