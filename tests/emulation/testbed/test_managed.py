"""Jobs that a cluster manager starts, stops, resizes and moves while the fabric runs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from emulation_runs import Finished, run_text

from testbed.api import run_scenario
from testbed.results.run_directory import RunDirectory

pytestmark = pytest.mark.emulation

SCENARIO = """
fabric: {kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 2, tors: 2, aggregations: 2,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
manager: %s
jobs:
  - {name: long, model: bert, gpus: 16, compute: 0.3s, communication: 2GB, overlap: 0, iterations: 14}
  - {name: short, model: resnet, gpus: 8, compute: 0.2s, communication: 2GB, overlap: 0, iterations: 5, start: 2s}
  - {name: other, model: resnet, gpus: 8, compute: 0.2s, communication: 1GB, overlap: 0, iterations: 6, start: 2.5s}
schedulers: [crux]
measure: {time_limit: 60s}
scale: {bandwidth: 8000, time: 1}
"""
START_S = {"long": 0.0, "short": 2.0, "other": 2.5}
SHORTEST_FIRST = "srtf"
BY_GAIN = "{name: optimus, policy: {round_s: 3, restart_s: 0.5}}"


@pytest.fixture(scope="module", params=[SHORTEST_FIRST, BY_GAIN], ids=["preempted", "resized"])
def managed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_text(SCENARIO % request.param, tmp_path_factory.mktemp("managed"))


def test_every_job_ends_and_one_was_taken_off_its_gpus_before(managed: Finished) -> None:
    found = managed.run("crux")["manager"]
    assert found["unfinished"] == []
    assert found["preemptions"] + found["migrations"] >= 1


def test_the_controller_followed_every_stint(managed: Finished) -> None:
    stints = [stint for job in managed.run("crux")["jobs"] for stint in job["stints"]]
    causes = [row["cause"] for row in managed.decisions("crux")]
    assert sorted(cause for cause in causes if cause.startswith("arrival")) == sorted(f"arrival of {s}" for s in stints)
    assert sorted(cause for cause in causes if cause.startswith("departure")) == sorted(
        f"departure of {s}" for s in stints
    )


def test_no_packet_is_lost_although_no_job_runs_when_the_network_is_brought_up(managed: Finished) -> None:
    fidelity = managed.run("crux")["fidelity"]
    assert (fidelity["retransmits"], [each for each in fidelity["findings"] if each["kind"] == "loss"]) == (0, [])


def test_no_work_is_lost_but_the_iteration_that_a_stop_cuts_off(managed: Finished) -> None:
    record = RunDirectory.open(managed.directory).read_record("crux")
    assert record.managed is not None
    for outcome in record.managed.outcomes:
        stints = [job for job in record.managed.stints if job.name in record.managed.stints_of[outcome.name]]
        made = {job.name: {row.iteration for row in record.iterations if row.job == job.name} for job in stints}
        work = sum(len(made[job.name]) * len(job.gpus) for job in stints)
        asked = {"long": 14 * 16, "short": 5 * 8, "other": 6 * 8}[outcome.name]
        assert asked <= work < asked + sum(len(job.gpus) for job in stints)


def test_no_gpu_has_two_jobs_at_once(managed: Finished) -> None:
    rows = managed.rows("crux", "iterations.csv")
    for gpu in {row["gpu"] for row in rows}:
        spans = sorted((float(row["start_s"]), float(row["end_s"])) for row in rows if row["gpu"] == gpu)
        assert all(first[1] <= second[0] + 1e-3 for first, second in pairwise(spans))


def test_the_flow_engine_expects_the_same_iterations_and_order_of_ends(managed: Finished, tmp_path: Path) -> None:
    managed.skip_if_disturbed()
    expected = run_scenario(str(managed.directory / "scenario.yaml"), engine="flow", out=tmp_path).summary["runs"][0]
    for job in expected["jobs"]:
        found = managed.job("crux", job["name"])
        assert found["jct_s"] >= 0.95 * job["jct_s"]  # announcing and connecting take time on packets only
        if not found["migrations"] and not job["migrations"]:
            assert found["iteration_s"]["p50"] == pytest.approx(job["iteration_s"]["p50"], rel=0.1)
    assert order_of_ends(managed.run("crux")) == order_of_ends(expected)


def order_of_ends(run: Mapping[str, Any]) -> list[str]:
    ends = {job["name"]: START_S[job["name"]] + job["jct_s"] for job in run["jobs"]}
    return sorted(ends, key=lambda name: ends[name])
