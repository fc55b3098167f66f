"""Specs become jobs, repeatable by seed, with connections that cannot be mistaken; refusals name the job."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workloads
from topologies.clos import clos96
from workloads.build import JobError, JobSpec, build_jobs
from workloads.communication.collectives import COLLECTIVES
from workloads.job import Flow, Job, Straggler
from workloads.models.catalogue import CATALOGUE

FABRIC = clos96()
MIX = (
    JobSpec("gpt", "crux-gpt", 48),
    JobSpec("moe", "moe", 16),
    JobSpec("bert", "bert", 15),
    JobSpec("ctr", "ctr", 9),
    JobSpec("resnet", "resnet", 8),
)


def build(spec: JobSpec, seed: int = 1) -> Job:
    return build_jobs([spec], FABRIC, "spread", seed)[0]


def connection(flow: Flow) -> tuple[str, int, str, int]:
    return (flow.source, flow.source_port, flow.target, flow.target_port)


def test_jobs_come_in_the_order_of_their_specs_with_the_gpus_asked_for() -> None:
    jobs = build_jobs(MIX, FABRIC, "spread")
    assert [(job.name, job.model, len(job.gpus)) for job in jobs] == [(s.name, s.model, s.gpus) for s in MIX]


def test_work_is_that_of_all_gpus() -> None:
    assert build(MIX[0]).flops == pytest.approx(48 * CATALOGUE["crux-gpt"].flops_per_gpu)


@pytest.mark.parametrize("model", CATALOGUE)
@pytest.mark.parametrize("collective", [None, *COLLECTIVES])
def test_the_bytes_of_a_flow_are_those_of_all_phases(model: str, collective: str | None) -> None:
    job = build(JobSpec("j", model, 16, collective=collective))
    sums: Counter[str] = Counter()
    for phase in job.phases:
        for transfer in phase.transfers:
            sums[transfer.flow] += transfer.bytes  # type: ignore[assignment]
            assert transfer.after is None or transfer.after in job.flow_by_id
    assert {flow.id: flow.bytes for flow in job.flows} == pytest.approx(dict(sums))


def test_phases_share_the_connections_of_the_same_role() -> None:
    moe = build(MIX[1])
    assert [len(phase.transfers) for phase in moe.phases[:4]] == [len(moe.phases[0].transfers)] * 4
    assert len(moe.flows) == len(moe.phases[0].transfers) + len(moe.phases[4].transfers)


def test_channels_multiply_connections_and_not_bytes() -> None:
    single, split = build(MIX[0]), build(replace(MIX[0], channels=4))
    assert len(split.flows) == 4 * len(single.flows)
    assert sum(flow.bytes for flow in split.flows) == pytest.approx(sum(flow.bytes for flow in single.flows))
    assert len({(flow.source, flow.source_port) for flow in split.flows}) == len(split.flows)
    assert [phase.inside for phase in split.phases] == [phase.inside for phase in single.phases]


@given(st.integers(0, 2**32))
def test_no_two_connections_of_a_cluster_can_be_mistaken(seed: int) -> None:
    flows = [flow for job in build_jobs(MIX, FABRIC, "first-free", seed) for flow in job.flows]
    assert len({flow.id for flow in flows}) == len(flows)
    assert len({(flow.source, flow.source_port) for flow in flows}) == len(flows)
    assert len({(flow.target, flow.target_port) for flow in flows}) == len(flows)
    assert all(20000 <= flow.source_port < 60000 and 5000 <= flow.target_port < 20000 for flow in flows)


def test_the_seed_draws_the_source_ports_and_nothing_else() -> None:
    first, again, other = (build(MIX[0], seed) for seed in (1, 1, 2))
    assert first == again
    ports = [[flow.source_port for flow in job.flows] for job in (first, other)]
    assert sum(a == b for a, b in zip(*ports, strict=True)) < 3
    assert first.phases == other.phases


def test_another_process_with_another_hash_seed_builds_the_same_jobs() -> None:
    program = (
        "from topologies.clos import clos96; from workloads.build import *;"
        "print(build_jobs([JobSpec('a', 'moe', 24), JobSpec('b', 'gpt', 24)], clos96(), 'spread', 7))"
    )
    root = str(Path(workloads.__file__).parent.parent)
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_compute_and_flops_set_each_other_by_the_flops_per_second_of_the_model() -> None:
    gpt = CATALOGUE["gpt"]
    assert build(JobSpec("j", "gpt", 8, compute_s=2.0)).flops == pytest.approx(8 * 2.0 * gpt.achieved_flops)
    assert build(JobSpec("j", "gpt", 8, flops=1e14)).compute_s == pytest.approx(1e14 / gpt.achieved_flops)
    both = build(JobSpec("j", "gpt", 8, flops=1e14, compute_s=2.0))
    assert (both.compute_s, both.flops) == (2.0, 8e14)


def test_communication_overrides_the_bytes_of_all_phases_in_proportion() -> None:
    plain, doubled = (
        build(JobSpec("j", "moe", 16, communication_bytes=size))
        for size in (
            None,
            2 * CATALOGUE["moe"].communication_bytes,
        )
    )
    assert [flow.bytes for flow in doubled.flows] == pytest.approx([2 * flow.bytes for flow in plain.flows])


def test_a_job_without_bytes_opens_no_connection() -> None:
    job = build(JobSpec("j", "bert", 16, communication_bytes=0))
    assert job.flows == () and all(phase.transfers == () for phase in job.phases)


def test_overlap_and_collective_are_overridden_but_all_to_all_stays() -> None:
    moe = build(JobSpec("j", "moe", 16, overlap=0.25, collective="ring"))
    assert [phase.collective for phase in moe.phases] == ["alltoall"] * 4 + ["ring"]
    assert {phase.overlap for phase in moe.phases} == {0.25}
    assert build(JobSpec("j", "bert", 16, collective="alltoall")).phases[0].collective == "alltoall"


def test_what_is_said_about_variation_and_time_reaches_the_job() -> None:
    stragglers = (Straggler("h0g1", 1.5),)
    job = build(JobSpec("j", "bert", 96, start_s=3.0, iterations=7, jitter=0.02, stragglers=stragglers))
    assert (job.start_s, job.iterations, job.jitter, job.stragglers) == (3.0, 7, 0.02, stragglers)


GOOD = JobSpec("j", "bert", 8)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (replace(GOOD, model="brt"), "unknown model 'brt', did you mean 'bert'?"),
        (replace(GOOD, model="qqqq"), "unknown model 'qqqq', expected one of gpt"),
        (replace(GOOD, collective="gossip"), "unknown collective 'gossip', expected one of: hierarchical"),
        (replace(GOOD, gpus=None), "needs 'gpus' or 'placement'"),
        (replace(GOOD, gpus=0), "gpus must be at least 1, not 0"),
        (replace(GOOD, gpus=97), "needs 97 GPUs, 96 are free"),
        (replace(GOOD, placement=("h0g0",)), "asks for 8 GPUs, its placement names 1"),
        (replace(GOOD, gpus=None, placement=()), "its placement is empty"),
        (replace(GOOD, compute_s=0.0), "compute must be longer than 0 s"),
        (replace(GOOD, compute_s=float("nan")), "compute must be longer than 0 s"),
        (replace(GOOD, flops=-1.0), "flops must be more than 0"),
        (replace(GOOD, communication_bytes=-1.0), "communication must be 0 bytes or more"),
        (replace(GOOD, overlap=1.1), "overlap must lie between 0 and 1"),
        (replace(GOOD, jitter=0.5), "jitter must lie between 0 and 0.3"),
        (replace(GOOD, channels=33), "channels must be 1 to 32, not 33"),
        (replace(GOOD, start_s=-1.0), "start must be 0 s or later, not -1 s"),
        (replace(GOOD, iterations=0), "iterations must be at least 1, not 0"),
        (replace(GOOD, name="a:b"), "a job needs a name without ':'"),
        (replace(GOOD, stragglers=(Straggler("h9g9", 2.0),)), "straggler 'h9g9' is not one of its GPUs"),
        (replace(GOOD, stragglers=(Straggler("h0g0", 0.0),)), "straggler 'h0g0' needs a factor above 0"),
    ],
)
def test_a_wrong_spec_is_refused_in_one_line_that_names_the_job(spec: JobSpec, message: str) -> None:
    with pytest.raises(JobError) as caught:
        build(spec)
    assert caught.value.job == spec.name
    assert str(caught.value).startswith(f"job '{spec.name}': {message}")
    assert "\n" not in str(caught.value)


def test_two_jobs_of_one_name_are_refused() -> None:
    with pytest.raises(JobError, match="two jobs have this name"):
        build_jobs([GOOD, GOOD], FABRIC)
