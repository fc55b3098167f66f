"""What workers are told: every byte of a job once, in emulated bytes, at the level that was decided."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from controller.decision import ByteLevels, Decision
from testbed.api import prepare
from testbed.engines.common.worker_plan import (
    emulated_size,
    hosts_of,
    job_plans,
    pcie_turns_of,
    time_shift_of,
    tos_of_flows,
)
from testbed.experiment.experiment import Experiment, Scale
from topologies.addressing import address_of
from topologies.shaping import BURST_S, segment_size, tos_of_level
from workloads.iteration.byte_marks import ByteMarks
from workloads.iteration.protocol import SetUpJob, decode_command, encode_command
from workloads.iteration.time_shift import TimeShift


@pytest.fixture(scope="module", params=["hello", "double-sided", "moe-alltoall"])
def experiment(request: pytest.FixtureRequest) -> Experiment:
    return prepare(str(request.param)).experiments[0]


def test_every_connection_has_one_end_that_sends_and_one_that_receives(experiment: Experiment) -> None:
    for job in experiment.jobs:
        plans = job_plans(job, experiment, Decision()).values()
        outgoing = [end for plan in plans for end in plan.outgoing]
        incoming = [end for plan in plans for end in plan.incoming]
        assert sorted(end.flow for end in outgoing) == sorted(flow.id for flow in job.flows)
        assert sorted(map(str, outgoing)) == sorted(map(str, incoming))


def test_connections_carry_the_five_tuple_that_the_controller_matches(experiment: Experiment) -> None:
    for job in experiment.jobs:
        for plan in job_plans(job, experiment, Decision()).values():
            for end in plan.outgoing:
                flow = job.flow_by_id[end.flow]
                assert end.source == address_of(experiment.fabric, flow.source)
                assert end.target == address_of(experiment.fabric, flow.target)
                assert (end.source_port, end.target_port) == (flow.source_port, flow.target_port)


def test_what_is_sent_is_what_is_received_and_adds_up_to_the_flow(experiment: Experiment) -> None:
    for job in experiment.jobs:
        plans = job_plans(job, experiment, Decision()).values()
        sent: dict[str, int] = {}
        received: dict[str, int] = {}
        for phase in (phase for plan in plans for phase in plan.phases):
            for outgoing in phase.out:
                sent[outgoing.flow] = sent.get(outgoing.flow, 0) + outgoing.size
            for incoming in phase.into:
                received[incoming.flow] = received.get(incoming.flow, 0) + incoming.size
        assert sent == received
        for flow, size in sent.items():
            assert size == pytest.approx(experiment.scale.size(job.flow_by_id[flow].bytes), abs=len(job.phases))


def test_a_host_computes_for_its_own_gpus(experiment: Experiment) -> None:
    for job in experiment.jobs:
        plans = job_plans(job, experiment, Decision())
        assert tuple(plans) == hosts_of(job, experiment.fabric)
        assert sorted(gpu for plan in plans.values() for gpu in plan.gpus) == sorted(job.gpus)
        assert all(experiment.fabric.host_of_gpu[gpu] == host for host, plan in plans.items() for gpu in plan.gpus)


def test_a_plan_survives_the_way_to_its_worker(experiment: Experiment) -> None:
    plans = job_plans(
        experiment.jobs[0], experiment, Decision(byte_levels={experiment.jobs[0].name: ByteLevels("left", (1e6,))})
    )
    assert all(
        decode_command(encode_command(host, SetUpJob(plan))) == (host, SetUpJob(plan)) for host, plan in plans.items()
    )


def test_a_flow_is_marked_with_its_own_level_its_jobs_or_the_lowest(experiment: Experiment) -> None:
    one, other = experiment.jobs[0].flows[0], experiment.jobs[1].flows[0]
    decision = Decision(levels={one.id: 2, other.job: 1})
    assert tos_of_flows(decision, (one, other), 8) == {one.id: tos_of_level(2), other.id: tos_of_level(1)}
    assert set(tos_of_flows(Decision(), (one, other), 8).values()) == {tos_of_level(7)}


def test_no_message_shrinks_to_nothing() -> None:
    assert emulated_size(Scale(1e9, 1.0), 1.0) == 1
    assert emulated_size(Scale(1000.0, 2.0), 5e6) == 10_000


def test_the_first_packet_waits_out_what_the_token_bucket_would_send_ahead_of_its_rate() -> None:
    experiment = prepare("hello", overrides=["scale={bandwidth: 8000, time: 1}"]).experiments[0]
    plan = job_plans(experiment.jobs[0], experiment, Decision())["h0"]
    assert plan.departure == pytest.approx(8 * segment_size(9000) / 12.5e6 + BURST_S)


@pytest.mark.parametrize(("bandwidth", "packets"), [(32000, 8), (4000, 8), (1000, 28)])
def test_the_window_is_eight_packets_or_what_a_fast_link_sends_in_twenty_milliseconds(
    bandwidth: float, packets: int
) -> None:
    experiment = prepare("hello", overrides=[f"scale={{bandwidth: {bandwidth}, time: 1}}"]).experiments[0]
    plan = job_plans(experiment.jobs[0], experiment, Decision())["h0"]
    assert plan.window == packets * segment_size(9000)


def test_thresholds_are_scaled_like_the_messages_they_count() -> None:
    experiment = prepare("hello", overrides=["scale={bandwidth: 8000, time: 2}"]).experiments[0]
    job = experiment.jobs[0]
    plan = job_plans(job, experiment, Decision(byte_levels={job.name: ByteLevels("sent", (4e6, 8e6))}))["h0"]
    marks = plan.byte_marks[job.flows[0].id]
    assert marks == ByteMarks(False, (1000, 2000), tuple(tos_of_level(level) for level in range(3)))


def test_more_thresholds_than_levels_are_refused() -> None:
    experiment = prepare("hello").experiments[0]
    decision = Decision(byte_levels={experiment.jobs[0].name: ByteLevels("left", tuple(map(float, range(8))))})
    with pytest.raises(ValueError, match="8 thresholds for 8 levels"):
        job_plans(experiment.jobs[0], experiment, decision)


def test_shifts_are_dilated() -> None:
    time_shift = time_shift_of(Decision(shifts={"a": 0.5}, periods={"a": 2.0}), "a", Scale(1.0, 4.0), anchor=9.0)
    assert time_shift == TimeShift(anchor=9.0, shift=2.0, period=8.0)
    assert time_shift_of(Decision(), "a", Scale(1.0, 4.0), anchor=9.0) is None


INSIDE = """
fabric: {kind: clos, hosts: 2, gpus_per_host: 4, nics_per_host: 2, tors: 2, aggregations: 1, port_rate: 200Gbps,
         fabric_rate: 400Gbps, OPTIONS}
jobs:
  - {name: a, model: bert, placement: ["h0:0,2", "h1:0,2"], communication: 2GB}
  - {name: b, model: bert, placement: ["h0:1", "h1:1"], communication: 2GB}
channels: 1
schedulers: [crux]
scale: {bandwidth: 32000}
"""


def inside(tmp_path: Path, options: str) -> Experiment:
    path = tmp_path / "inside.yaml"
    path.write_text(INSIDE.replace("OPTIONS", options))
    return prepare(str(path)).experiments[0]


def test_without_options_a_plan_says_nothing_of_the_inside_of_hosts(tmp_path: Path) -> None:
    experiment = inside(tmp_path, "pcie_rate: 10Gbps")
    assert all(
        phase.inside_s == 0.0 and not phase.background
        for job in experiment.jobs
        for plan in job_plans(job, experiment, Decision()).values()
        for phase in plan.phases
    )


def test_traffic_between_gpus_is_a_time_that_the_communication_takes_at_least(tmp_path: Path) -> None:
    experiment = inside(tmp_path, "intra_host: nvlink, nvlink_rate: 8Gbps")
    first, second = experiment.jobs
    for plan in job_plans(first, experiment, Decision()).values():
        assert sum(phase.inside_s for phase in plan.phases) == pytest.approx(2e9 * 8 / 8e9)
    for plan in job_plans(second, experiment, Decision()).values():
        assert not any(phase.inside_s for phase in plan.phases)


def test_slow_pcie_holds_the_first_packet_and_its_queues_widen_the_window(tmp_path: Path) -> None:
    plain, slow = inside(tmp_path, "pcie_rate: 100Gbps"), inside(tmp_path, "pcie_rate: 100Gbps, pcie_queues: emulated")
    (one, other) = (next(iter(job_plans(each.jobs[0], each, Decision()).values())) for each in (plain, slow))
    assert other.departure - BURST_S == pytest.approx(2 * (one.departure - BURST_S))
    assert other.window - one.window == 2 * segment_size(9000)


def test_flows_take_turns_by_the_level_of_their_job_at_their_own_host(tmp_path: Path) -> None:
    experiment = inside(tmp_path, "pcie_rate: 100Gbps")
    decision = Decision(levels={"a": 0}, exclusive=("h0s0->h0n0",))
    turns = pcie_turns_of(decision, experiment.jobs, experiment.fabric, 8)
    assert turns == {"h0": {"a:ring:h0n0p0>h1n0p0": ("h0s0->h0n0", 0), "b:ring:h0n0p0>h1n0p0": ("h0s0->h0n0", 7)}}
    assert pcie_turns_of(Decision(levels={"a": 0}), experiment.jobs, experiment.fabric, 8) == {}


def test_a_slice_is_no_longer_than_a_chunk_or_no_host_would_ever_go_on(tmp_path: Path) -> None:
    experiment = inside(tmp_path, "pcie_rate: 100Gbps")
    slices = []
    for bandwidth in (32000.0, 1e6):
        scaled = replace(experiment, scale=Scale(bandwidth, 1.0))
        job = scaled.jobs[1]
        slices.append({plan.slice_size for plan in job_plans(job, scaled, Decision()).values()})
    assert slices == [{2 * segment_size(9000)}, {1000}]


def test_jobs_come_later_where_one_starts_later_or_a_manager_places_them() -> None:
    assert not prepare("hello").experiments[0].jobs_come_later
    assert prepare("hello", overrides=["jobs.small.start=2s"]).experiments[0].jobs_come_later
    assert prepare("arrivals").experiments[0].jobs_come_later
