"""What senders carry out: rates, shifts, levels by bytes and by step. Every packet as decided."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from emulation_runs import Finished, run_text

from testbed.api import prepare
from testbed.experiment.scale import pipeline_fill
from workloads.job import Job

pytestmark = pytest.mark.emulation

FABRIC = """
fabric: {kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 2, tors: 2, aggregations: 4,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
channels: 1
scale: {bandwidth: 4000, time: 1}
measure: {iterations: 6, warmup: 2, time_limit: 20s}
"""
JOBS = """
jobs:
  - {name: one, model: bert, placement: ["h0:0-1", "h2:0-1"], compute: 0.3s, communication: 3GB, overlap: 0.5}
  - {name: two, model: resnet, placement: ["h0:2-3", "h2:2-3"], compute: 0.2s, communication: 2GB, overlap: 0}
  - {name: three, model: resnet, placement: ["h1:0-1", "h3:0-1"], compute: 0.4s, communication: 2GB, overlap: 0}
"""


def finished(folder: Path, text: str) -> Finished:
    return run_text(FABRIC + text, folder)


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    by_hand = "paths: least-loaded, rates: {one: 40Gbps}, shifts: {three: 0.25s}, periods: {three: 0.65s}"
    schedulers = f"schedulers: [{{name: fixed, {by_hand}}}]\n"
    return finished(tmp_path_factory.mktemp("by_hand"), JOBS + schedulers)


def test_a_flow_is_paced_at_its_rate_within_3_percent(by_hand: Finished) -> None:
    """A ring of two hosts sends the gradient once; three of its gigabytes go over one NIC at 40 Gbit/s."""
    by_hand.skip_if_disturbed()
    sent = [
        (float(row["communication_s"]), row)
        for row in by_hand.rows("fixed", "iterations.csv")
        if row["job"] == "one" and int(row["iteration"]) >= 2
    ]
    assert sent
    expected = 8 * 3e9 / 40e9
    assert sorted(seconds for seconds, _ in sent)[len(sent) // 2] == pytest.approx(expected, rel=0.03)


def test_a_shifted_job_begins_at_its_phase_within_5_ms(by_hand: Finished) -> None:
    by_hand.skip_if_disturbed()
    errors = by_hand.environment("fixed")["phase_errors_s"]["three"]
    assert len(errors) >= 6
    assert max(map(abs, errors)) <= 0.005


def test_waiting_for_a_phase_is_idle_time_of_its_own(by_hand: Finished) -> None:
    by_hand.skip_if_disturbed()
    shifted, free = (by_hand.job("fixed", name) for name in ("three", "two"))
    assert shifted["gpu_idle_s"]["start"] / shifted["allocated_gpu_s"] > 0.05
    assert free["gpu_idle_s"]["start"] / free["allocated_gpu_s"] < 0.02


@pytest.fixture(scope="module")
def by_step(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    text = FABRIC + JOBS + "schedulers: [sincronia, varys, pfabric, pias]\n"
    shorter = text.replace("iterations: 6, warmup: 2", "iterations: 3, warmup: 1")
    return run_text(shorter, tmp_path_factory.mktemp("by_step"))


@pytest.mark.parametrize("scheduler", ["sincronia", "varys", "pfabric", "pias"])
def test_packets_carry_what_was_decided_and_none_is_lost(by_step: Finished, scheduler: str) -> None:
    fidelity = by_step.run(scheduler)["fidelity"]
    assert {each["kind"] for each in fidelity["findings"]}.isdisjoint({"mark", "path"}), fidelity["reasons"]
    assert (fidelity["retransmits"], fidelity["unintended_drops"]) == (0, 0)
    assert by_step.environment(scheduler)["sampled_packets"] > 100


@pytest.mark.parametrize("scheduler", ["sincronia", "varys"])
def test_a_step_reaches_its_senders_within_10_ms(by_step: Finished, scheduler: str) -> None:
    by_step.skip_if_disturbed()
    delays = sorted(by_step.environment(scheduler)["step_delays_s"])
    assert delays
    assert delays[len(delays) // 2] <= 0.010


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    text = JOBS + "schedulers: [{name: crux, arrival: profile, profile: measured}]\n"
    return finished(tmp_path_factory.mktemp("profiled"), text)


def test_a_new_job_is_profiled_at_the_highest_level_before_all_is_decided_anew(profiled: Finished) -> None:
    rows = profiled.decisions("crux")
    assert [row["cause"] for row in rows[:3]] == ["arrival of one", "arrival of two", "arrival of three"]
    assert rows[2]["levels"] == {"one": 0, "two": 0, "three": 0}
    profiled.skip_if_disturbed()  # a profile needs iterations that nothing else disturbed
    assert {row["cause"] for row in rows[3:]} == {"profile of one", "profile of two", "profile of three"}
    assert set(rows[-1]["notes"]["profile"].values()) == {"measured"}


def busiest_port_s(job: Job) -> float:
    """What the bytes of an iteration take at the port that sends most of them."""
    sent: dict[str, float] = defaultdict(float)
    for flow in job.flows:
        sent[flow.source] += flow.bytes
    return max(sent.values()) * 8 / 100e9


def test_a_measured_profile_is_near_what_the_job_declares(profiled: Finished) -> None:
    """Jobs that meet nobody on their paths measure what they declare; here the second has a path to itself."""
    profiled.skip_if_disturbed()
    last = profiled.decisions("crux")[-1]
    measured = last["notes"]["communication_s"]
    (experiment,) = prepare(str(profiled.directory / "scenario.yaml")).experiments
    jobs = {job.name: job for job in experiment.jobs}
    declared = {name: busiest_port_s(job) for name, job in jobs.items()}
    assert all(measured[job] >= 0.97 * declared[job] for job in declared)
    fill = {name: pipeline_fill(job, experiment.fabric, experiment.scale, last["paths"]) for name, job in jobs.items()}
    assert min(measured[job] / (declared[job] + fill[job]) for job in declared) < 1.05
