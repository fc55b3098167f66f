"""An iteration as a GOAL schedule: its operations, its dependencies, and how long LogGOPS says it takes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from loggops import parsed, simulated_s

from testbed.api import run_scenario
from testbed.cli.main import main
from testbed.results.run_directory import RunDirectory
from testbed.results.trace.goal import schedule
from testbed.scenario import build_fabric, build_jobs, load
from topologies.fabric import Fabric
from workloads.job import Job

RATE = 100e9
SCENARIO = """\
fabric:
  kind: clos
  hosts: {hosts}
  gpus_per_host: 2
  nics_per_host: 1
  tors: 1
  aggregations: 1
  port_rate: 100Gbps
  fabric_rate: 1600Gbps
channels: 1
jobs:
  - name: a
    model: gpt
    gpus: {gpus}
    collective: {collective}
    overlap: {overlap}
    compute: 200ms
    flops: 1TFLOP
    communication: 2GB
schedulers: [ecmp]
measure: {{iterations: 1, warmup: 0}}
"""


def made(path: Path, **given: Any) -> tuple[Path, tuple[Job, ...], Fabric]:
    more = {"hosts": 4, "collective": "ring", "overlap": 0.0, **given}
    file = path / "a.yaml"
    file.write_text(SCENARIO.format(gpus=2 * more["hosts"], **more))
    scenario = load(file)
    fabric = build_fabric(scenario)
    return file, tuple(build_jobs(scenario, fabric)), fabric


@pytest.mark.parametrize("collective", ["ring", "hierarchical", "alltoall", "broadcast", "tree"])
@pytest.mark.parametrize("hosts", [2, 5])
def test_every_byte_is_sent_once_and_received_where_it_is_sent(tmp_path: Path, collective: str, hosts: int) -> None:
    _, (job,), fabric = made(tmp_path, collective=collective, hosts=hosts)
    ranks, operations = parsed(schedule([job], fabric).text())
    assert ranks == hosts
    sent, received = Counter[Any](), Counter[Any]()
    for each in operations.values():
        if each.kind == "send":
            sent[each.rank, each.peer, each.tag] += each.amount
        elif each.kind == "recv":
            received[each.peer, each.rank, each.tag] += each.amount
    assert sent == received and len(sent) > 0
    assert sum(sent.values()) == pytest.approx(sum(t.bytes for p in job.phases for t in p.transfers), abs=len(sent))


@pytest.mark.parametrize("overlap", [0.0, 0.4])
@pytest.mark.parametrize(
    ("collective", "error"), [("ring", 1e-3), ("hierarchical", 1e-3), ("alltoall", 1e-3), ("point-to-point", 1e-3)]
)
def test_where_nothing_contends_loggops_and_the_flow_engine_agree(
    tmp_path: Path, collective: str, error: float, overlap: float
) -> None:
    file, jobs, fabric = made(tmp_path, collective=collective, overlap=overlap)
    run = run_scenario(file, engine="flow", out=tmp_path / "runs", index=False)
    (entry,) = run.summary["runs"][0]["jobs"]
    assert simulated_s(schedule(jobs, fabric).text(), 8 / RATE) == pytest.approx(
        entry["iteration_s"]["mean"], rel=error
    )


def test_several_jobs_are_ranks_one_behind_the_other(tmp_path: Path) -> None:
    _, (job,), fabric = made(tmp_path)
    ranks, operations = parsed(schedule([job, job], fabric).text())
    assert ranks == 8
    first = {key[1]: each for key, each in operations.items() if key[0] == 0}
    second = {key[1]: each for key, each in operations.items() if key[0] == 4}
    assert [each.peer + 4 for each in first.values() if each.peer >= 0] == [
        each.peer for each in second.values() if each.peer >= 0
    ]


def test_stages_of_a_pipeline_wait_for_the_ones_before(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "fabric: {kind: clos, hosts: 4, gpus_per_host: 2, nics_per_host: 1, tors: 1, aggregations: 1, "
        "port_rate: 400Gbps, fabric_rate: 1600Gbps}\nchannels: 1\n"
        "jobs: [{name: a, model: llama3-8b, gpus: 8, parallel: {tensor: 2, pipeline: 4}, microbatches: 4}]\n"
        "schedulers: [ecmp]\nmeasure: {iterations: 1, warmup: 0}\n"
    )
    scenario = load(file)
    fabric = build_fabric(scenario)
    run = run_scenario(file, engine="flow", out=tmp_path / "runs", index=False)
    rows = RunDirectory.open(run.directory).read_record("ecmp").iterations
    ends_s = max(row.end_s for row in rows if row.iteration == 0)  # stages end one after the other
    text = schedule(build_jobs(scenario, fabric), fabric).text()
    assert simulated_s(text, 8 / 400e9) == pytest.approx(ends_s, rel=1e-3)


def test_the_command_writes_a_file_and_refuses_what_is_no_iteration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, jobs, fabric = made(tmp_path)
    directory = run_scenario(file, engine="flow", out=tmp_path / "runs", index=False).directory
    assert main(["export", str(directory), "--goal"]) == 0
    assert (directory / "goal" / "a.goal").read_text() == schedule(jobs, fabric).text()
    assert capsys.readouterr().out == f"{directory / 'goal' / 'a.goal'}\n"
    by_manager = ["checks=[]", "manager=consolidated", "jobs=[{name: a, model: bert, gpus: 2}]"]
    managed = run_scenario("hello", engine="flow", overrides=by_manager, out=tmp_path)
    assert main(["export", str(managed.directory), "--goal"]) == 2
    assert "placed by a manager" in capsys.readouterr().err
