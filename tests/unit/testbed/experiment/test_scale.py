"""The scale: within what the machine carries in the busiest second, and no smaller than it must be."""

from __future__ import annotations

from dataclasses import replace
from math import isinf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.api import prepare
from testbed.errors import CannotRunError
from testbed.experiment.capacity import ESTIMATES, Capacity, alike
from testbed.experiment.demand import Demand, peak_demand
from testbed.experiment.experiment import Measure, Scale
from testbed.experiment.scale import (
    ALLTOALL_LINK_RATE,
    DILATIONS,
    FINE_CHUNK_PACKETS,
    LEAST_ALLTOALL_PACKETS,
    LEAST_CHUNK_PACKETS,
    LONGEST_RUN_S,
    MANAGED_SHARE,
    MAX_LINK_RATE,
    choose_scale,
    finest,
    grain,
    load_share,
    pipeline_fill,
    refuse_long_run,
    step_down,
)
from testbed.scenario import emulated

PREPARED = {name: prepare(name) for name in emulated()}
CAPACITIES = st.builds(alike, st.just("userspace"), st.floats(14_000, 1e6))
"""Machines that can show every bundled scenario; slower ones are refused, see below."""


@given(st.sampled_from(sorted(PREPARED)), CAPACITIES)
@settings(max_examples=40)
def test_the_peak_is_always_within_the_capacity(name: str, capacity: Capacity) -> None:
    prepared = PREPARED[name]
    scale = choose_scale(prepared.fabric, prepared.jobs, capacity)
    assert load_share([peak_demand(prepared.fabric, prepared.jobs)], scale, capacity) <= 1 + 1e-9


@given(st.sampled_from(sorted(PREPARED)), CAPACITIES)
@settings(max_examples=40)
def test_the_scale_is_rounded_by_less_than_a_tenth(name: str, capacity: Capacity) -> None:
    prepared = PREPARED[name]
    scale = choose_scale(prepared.fabric, prepared.jobs, capacity)
    fastest = max(link.capacity for link in prepared.fabric.network_links)
    share = load_share([peak_demand(prepared.fabric, prepared.jobs)], scale, capacity)
    most = MAX_LINK_RATE if isinf(grain(prepared.jobs, scale).alltoall) else ALLTOALL_LINK_RATE
    assert max(share, fastest / most / scale.bandwidth, 1 / scale.bandwidth) >= 1 / 1.1 - 1e-9


@given(st.sampled_from(sorted(PREPARED)), CAPACITIES)
@settings(max_examples=40)
def test_dilation_gives_the_packets_wanted_or_is_the_largest_there_is(name: str, capacity: Capacity) -> None:
    prepared = PREPARED[name]
    scale = choose_scale(prepared.fabric, prepared.jobs, capacity)
    assert scale.time in DILATIONS
    assert grain(prepared.jobs, scale).share >= 1 or scale.time == DILATIONS[-1]


@given(st.sampled_from(sorted(PREPARED)), st.builds(alike, st.just("userspace"), st.floats(50, 20_000)))
@settings(max_examples=40)
def test_a_machine_too_slow_for_any_picture_is_refused_with_the_dilation_that_would_do(
    name: str, capacity: Capacity
) -> None:
    prepared = PREPARED[name]
    try:
        scale = choose_scale(prepared.fabric, prepared.jobs, capacity)
    except CannotRunError as error:
        told = str(error).split("set scale: {bandwidth: ")[1].rstrip("}").replace("time: ", "").replace("mtu: ", "")
        bandwidth, time, mtu = (float(word) for word in told.split(", "))
        assert grain(prepared.jobs, Scale(bandwidth, time, int(mtu))).share >= 1 - 1e-6
        assert time > DILATIONS[-1]
    else:
        found = grain(prepared.jobs, scale)
        assert found.chunk >= LEAST_CHUNK_PACKETS and found.alltoall >= LEAST_ALLTOALL_PACKETS


def test_the_estimates_scale_clos96() -> None:
    prepared = PREPARED["clos96.yaml"]
    assert choose_scale(prepared.fabric, prepared.jobs, ESTIMATES["userspace"]) == Scale(33_000.0, 8.0, 9000)
    assert choose_scale(prepared.fabric, prepared.jobs, ESTIMATES["nftables"]) == Scale(6100.0, 1.5, 9000)


def test_with_one_connection_per_pair_of_ports_clos96_runs_at_full_speed() -> None:
    prepared = prepare("clos96", overrides=["channels=1"])
    assert choose_scale(prepared.fabric, prepared.jobs, ESTIMATES["userspace"]) == Scale(33_000.0, 2.0, 9000)
    fine = choose_scale(prepared.fabric, prepared.jobs, ESTIMATES["nftables"])
    assert fine == Scale(6100.0, 1.0, 9000)
    assert grain(prepared.jobs, fine).chunk >= FINE_CHUNK_PACKETS


ALONE = """
fabric: {{kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 2, tors: 4, aggregations: 4,
         port_rate: 100Gbps, fabric_rate: 100Gbps}}
jobs:
  - {{name: alone, model: bert, placement: [h0, h1, h2, h3], collective: {collective}, communication: {size}MB}}
channels: 1
schedulers: [ecmp]
"""


@pytest.mark.parametrize(
    ("collective", "size", "rate"),
    [
        ("alltoall", 8_000, ALLTOALL_LINK_RATE),  # 1 s of a host's two ports: 1,396 packets, half as many do
        ("alltoall", 4_000, MAX_LINK_RATE),  # 698 packets, of which 400 are wanted
        ("hierarchical", 8_000, MAX_LINK_RATE),
        ("point-to-point", 8_000, MAX_LINK_RATE),  # a port sends to one other port
    ],
)
def test_links_of_all_to_alls_are_slower_where_enough_packets_are_left(
    collective: str, size: int, rate: float, tmp_path: Path
) -> None:
    path = tmp_path / "alone.yaml"
    path.write_text(ALONE.format(collective=collective, size=size))
    prepared = prepare(str(path))
    scale = choose_scale(prepared.fabric, prepared.jobs, ESTIMATES["nftables"])
    assert (100e9 / scale.bandwidth, scale.time) == (rate, 1.0)


def test_clos1024_has_six_packets_in_its_smallest_chunk() -> None:
    prepared = PREPARED["clos1024.yaml"]
    scale = choose_scale(prepared.fabric, prepared.jobs, ESTIMATES["nftables"])
    assert scale.time <= 12.0
    assert grain(prepared.jobs, scale).chunk >= 6


def test_jobs_under_a_manager_are_planned_with_half_of_the_capacity() -> None:
    prepared = PREPARED["arrivals.yaml"]
    scale = prepared.experiments[0].scale
    share = load_share([peak_demand(prepared.fabric, prepared.jobs)], scale, prepared.capacity)
    assert MANAGED_SHARE / 1.1 <= share <= MANAGED_SHARE
    assert grain(prepared.jobs, scale).share >= 1


def test_small_packets_are_taken_only_where_links_cannot_be_faster_and_they_save_dilation(tmp_path: Path) -> None:
    path = tmp_path / "alone.yaml"
    path.write_text(ALONE.format(collective="ring", size=400))
    small, clos96 = prepare(str(path)), PREPARED["clos96.yaml"]
    assert choose_scale(small.fabric, small.jobs, alike("nftables", 1e9)) == Scale(1000.0, 1.0, 6000)
    assert choose_scale(small.fabric, small.jobs, alike("nftables", 1e9), mtus=[9000]) == Scale(1000.0, 1.5, 9000)
    assert choose_scale(clos96.fabric, clos96.jobs, ESTIMATES["userspace"]).mtu == 9000


def test_a_burst_counts_however_quiet_the_second_around_it_is() -> None:
    prepared = PREPARED["hello.yaml"]
    burst = Demand("ecmp", (1e12, *[0.0] * 19), (3e12, *[0.0] * 19))
    gentle = replace(burst, sent=(1e12 / 20,) * 20, forwarded=(3e12 / 20,) * 20)
    slow = alike("nftables", 20_000.0)
    with_bursts, without = (choose_scale(prepared.fabric, prepared.jobs, slow, [each]) for each in (burst, gentle))
    assert with_bursts.bandwidth > without.bandwidth


def test_the_busiest_of_all_demands_decides() -> None:
    prepared = PREPARED["hello.yaml"]
    small, large = Demand("ecmp", (1e11,), (3e11,)), Demand("crux", (2e11,), (6e11,))
    slow = alike("nftables", 20_000.0)
    alone = choose_scale(prepared.fabric, prepared.jobs, slow, [large])
    assert choose_scale(prepared.fabric, prepared.jobs, slow, [small, large]) == alone


def test_packets_are_as_small_as_the_machine_carries_at_the_same_rates() -> None:
    prepared = PREPARED["hello.yaml"]
    demand = [peak_demand(prepared.fabric, prepared.jobs)]
    scale = choose_scale(prepared.fabric, prepared.jobs, alike("nftables", 1e9), demand)
    fine = finest(scale, prepared.fabric, alike("nftables", 1e9), demand)
    assert (fine.bandwidth, fine.time, fine.mtu) == (scale.bandwidth, scale.time, 1500)
    enough = load_share(demand, scale, alike("nftables", 1.0))
    tight = alike("nftables", 2.3 * enough)
    assert finest(scale, prepared.fabric, tight, demand).mtu == 4500
    assert finest(scale, prepared.fabric, alike("nftables", 1.01 * enough), demand) == scale


def test_one_step_down_asks_less_and_keeps_the_packets() -> None:
    jobs = PREPARED["clos96.yaml"].jobs
    before = Scale(13_000.0, 3.0)
    after = step_down(jobs, before)
    assert after.bandwidth == 17_000.0
    assert after.time in DILATIONS and after.mtu == before.mtu
    assert grain(jobs, after).share >= min(1.0, grain(jobs, before).share)


def test_a_run_of_more_than_an_hour_is_refused_with_what_would_do() -> None:
    prepared = PREPARED["clos96.yaml"]
    scale = Scale(32_000, 8.0)
    refuse_long_run(prepared.fabric, prepared.jobs, Measure(20, 3, LONGEST_RUN_S / 8), scale)
    with pytest.raises(CannotRunError, match=r"measure for 450 s .* time: 2.9, mtu: 9000"):
        refuse_long_run(prepared.fabric, prepared.jobs, Measure(10_000, 3, 1234.0), scale)


def test_the_last_packet_is_received_whole_on_each_link_of_its_path_but_the_first() -> None:
    prepared = PREPARED["hello.yaml"]
    job, fabric = prepared.jobs[0], prepared.fabric
    paths = {flow.id: fabric.candidate_paths(flow.source, flow.target)[0] for flow in job.flows}
    one, two = (pipeline_fill(job, fabric, Scale(8000, time), paths) for time in (1.0, 2.0))
    assert one == pytest.approx(3 * 8 * 8960 / 12.5e6)
    assert two == pytest.approx(one / 2)
    there = replace(job, flows=tuple(flow for flow in job.flows if fabric.ports[flow.source].host == "h0"))
    assert pipeline_fill(there, fabric, Scale(8000, 1.0), paths) == pytest.approx(one)


def test_smaller_packets_cost_more() -> None:
    demand = [peak_demand(PREPARED["hello.yaml"].fabric, PREPARED["hello.yaml"].jobs)]
    large, small = (load_share(demand, Scale(8000, 1.0, mtu), ESTIMATES["userspace"]) for mtu in (9000, 1500))
    assert small == pytest.approx(large * 8960 / 1460 / 1.4)


def test_every_port_of_clos96_counts_once_for_each_switch_on_its_way() -> None:
    prepared = PREPARED["clos96.yaml"]
    demand = peak_demand(prepared.fabric, prepared.jobs)
    assert demand.busiest("userspace", 1.0) == pytest.approx(48 * (3 + 0.5) * 200e9)


@given(st.floats(1, 1e6), st.floats(0.5, 8), st.floats(1, 1e12))
def test_sizes_come_back_as_they_were(bandwidth: float, time: float, size: float) -> None:
    scale = Scale(bandwidth, time)
    assert scale.unscale_size(scale.size(size)) == pytest.approx(size)
