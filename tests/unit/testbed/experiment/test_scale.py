"""The scale: within the budget at the peak, and no smaller than it must be."""

from __future__ import annotations

from dataclasses import replace
from math import isinf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.api import prepare
from testbed.errors import CannotRunError
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
    grain,
    peak_load,
    pipeline_fill,
    refuse_long_run,
)
from testbed.machine.budget import BUILT_IN_BUDGETS, SHARE_PLANNED, Budget, BudgetPoint, constant
from testbed.scenario import bundled

PREPARED = {name: prepare(name) for name in bundled()}
BUDGETS = st.builds(constant, st.floats(12_000, 1e6))
"""Machines that can show every bundled scenario; slower ones are refused, see below."""
MEASURED = Budget((BudgetPoint(9000, 48, 12_000.0), BudgetPoint(1500, 48, 24_000.0)), "measured")


@given(st.sampled_from(sorted(PREPARED)), BUDGETS)
@settings(max_examples=40)
def test_the_peak_is_always_within_the_budget(name: str, budget: Budget) -> None:
    prepared = PREPARED[name]
    scale = choose_scale(prepared.fabric, prepared.jobs, budget)
    assert peak_load(prepared.fabric, prepared.jobs, scale, budget).share <= 1 + 1e-9


@given(st.sampled_from(sorted(PREPARED)), BUDGETS)
@settings(max_examples=40)
def test_the_scale_is_rounded_by_less_than_a_tenth(name: str, budget: Budget) -> None:
    prepared = PREPARED[name]
    scale = choose_scale(prepared.fabric, prepared.jobs, budget)
    fastest = max(link.capacity for link in prepared.fabric.network_links)
    share = peak_load(prepared.fabric, prepared.jobs, scale, budget).share
    most = MAX_LINK_RATE if isinf(grain(prepared.jobs, scale).alltoall) else ALLTOALL_LINK_RATE
    assert max(share, fastest / most / scale.bandwidth, 1 / scale.bandwidth) >= 1 / 1.1 - 1e-9


@given(st.sampled_from(sorted(PREPARED)), BUDGETS)
@settings(max_examples=40)
def test_dilation_gives_the_packets_wanted_or_is_the_largest_there_is(name: str, budget: Budget) -> None:
    prepared = PREPARED[name]
    scale = choose_scale(prepared.fabric, prepared.jobs, budget)
    assert scale.time in DILATIONS
    assert grain(prepared.jobs, scale).share >= 1 or scale.time == DILATIONS[-1]


@given(st.sampled_from(sorted(PREPARED)), st.builds(constant, st.floats(50, 20_000)))
@settings(max_examples=40)
def test_a_machine_too_slow_for_any_picture_is_refused_with_the_dilation_that_would_do(
    name: str, budget: Budget
) -> None:
    prepared = PREPARED[name]
    try:
        scale = choose_scale(prepared.fabric, prepared.jobs, budget)
    except CannotRunError as error:
        told = str(error).split("set scale: {bandwidth: ")[1].rstrip("}").replace("time: ", "").replace("mtu: ", "")
        bandwidth, time, mtu = (float(word) for word in told.split(", "))
        assert grain(prepared.jobs, Scale(bandwidth, time, int(mtu))).share >= 1 - 1e-6
        assert time > DILATIONS[-1]
    else:
        found = grain(prepared.jobs, scale)
        assert found.chunk >= LEAST_CHUNK_PACKETS and found.alltoall >= LEAST_ALLTOALL_PACKETS


def test_the_built_in_budgets_scale_clos96() -> None:
    prepared = PREPARED["clos96.yaml"]
    assert choose_scale(prepared.fabric, prepared.jobs) == Scale(32_000.0, 8.0, 9000)
    assert choose_scale(prepared.fabric, prepared.jobs, BUILT_IN_BUDGETS["nftables"]) == Scale(13_000.0, 3.0, 9000)


def test_with_one_connection_per_pair_of_ports_clos96_runs_at_full_speed() -> None:
    prepared = prepare("clos96", overrides=["channels=1"])
    assert choose_scale(prepared.fabric, prepared.jobs) == Scale(32_000.0, 2.0, 9000)
    fine = choose_scale(prepared.fabric, prepared.jobs, BUILT_IN_BUDGETS["nftables"])
    assert fine == Scale(5800.0, 1.0, 9000)
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
    scale = choose_scale(prepared.fabric, prepared.jobs, BUILT_IN_BUDGETS["nftables"])
    assert (100e9 / scale.bandwidth, scale.time) == (rate, 1.0)


def test_clos1024_has_six_packets_in_its_smallest_chunk() -> None:
    prepared = PREPARED["clos1024.yaml"]
    scale = choose_scale(prepared.fabric, prepared.jobs, BUILT_IN_BUDGETS["nftables"])
    assert scale.time <= 12.0
    assert grain(prepared.jobs, scale).chunk >= 6


def test_jobs_under_a_manager_are_planned_with_half_of_the_budget() -> None:
    prepared = PREPARED["arrivals.yaml"]
    scale = prepared.experiments[0].scale
    share = peak_load(prepared.fabric, prepared.jobs, scale, prepared.budget).share
    assert MANAGED_SHARE / 1.1 <= share <= MANAGED_SHARE
    assert grain(prepared.jobs, scale).share >= 1


def test_small_packets_are_taken_only_where_they_save_dilation() -> None:
    clos96, hello = PREPARED["clos96.yaml"], PREPARED["hello.yaml"]
    assert choose_scale(hello.fabric, hello.jobs, MEASURED).mtu == 9000
    scale = choose_scale(clos96.fabric, clos96.jobs, MEASURED)
    large = choose_scale(clos96.fabric, clos96.jobs, replace(MEASURED, points=MEASURED.points[:1]))
    assert (scale.mtu, large.mtu) == (1500, 9000)
    assert scale.time < large.time


def test_a_budget_between_two_points_costs_what_lies_between() -> None:
    halfway = MEASURED.at(5250, 48)
    assert SHARE_PLANNED / halfway == pytest.approx((1 / 12_000 + 1 / 24_000) / 2)
    assert MEASURED.at(1000, 1) == MEASURED.at(1500, 48) == pytest.approx(SHARE_PLANNED * 24_000)
    assert constant(500.0).at(1500, 4) == 500.0


def test_several_channels_cost_what_was_measured_with_several() -> None:
    single, several = (BudgetPoint(9000, 48, rate, channels=count) for rate, count in ((60_000.0, 1), (30_000.0, 4)))
    budget = Budget((single, several), "measured once")
    assert budget.at(9000, 8, 4) == budget.at(1500, 48, 8) == pytest.approx(SHARE_PLANNED * 30_000)
    assert budget.at(9000, 48) == pytest.approx(SHARE_PLANNED * 60_000)
    assert SHARE_PLANNED / budget.at(9000, 48, 2.5) == pytest.approx((1 / 60_000 + 1 / 30_000) / 2)
    assert Budget((single,), "measured once").at(9000, 48, 4) == budget.at(9000, 48)


def test_a_fabric_of_jobs_with_four_channels_is_planned_with_what_four_channels_leave() -> None:
    prepared = PREPARED["crux-fig20.yaml"]
    budget = BUILT_IN_BUDGETS["nftables"]
    load = peak_load(prepared.fabric, prepared.jobs, Scale(8000, 1.0), budget)
    ports = {flow.source for job in prepared.jobs for flow in job.flows}
    assert load.budget == pytest.approx(budget.at(9000, len(ports), 4))
    assert load.budget < budget.at(9000, len(ports), 1)


def test_jobs_that_mostly_stay_under_their_tor_are_planned_with_what_short_paths_leave() -> None:
    """Of figure 7's 80 ports 24 send across ToRs, over three switches, and 56 over one."""
    prepared = PREPARED["crux-fig7.yaml"]
    points = [BudgetPoint(9000, 48, rate, switches=count) for rate, count in ((30_000.0, 1), (60_000.0, 3))]
    budget = Budget(tuple(points), "measured once")
    load = peak_load(prepared.fabric, prepared.jobs, Scale(8000, 1.0), budget)
    assert load.budget == pytest.approx(budget.at(9000, 80, 8, (24 * 3 + 56) / 80))
    assert load.budget < 0.8 * budget.at(9000, 80, 8)


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


def test_twice_the_dilation_leaves_the_peak_as_it_is() -> None:
    prepared = PREPARED["clos96.yaml"]
    one, two = (peak_load(prepared.fabric, prepared.jobs, Scale(32000, time)) for time in (1.0, 2.0))
    assert one == two


def test_smaller_packets_cost_more() -> None:
    prepared = PREPARED["hello.yaml"]
    large, small = (peak_load(prepared.fabric, prepared.jobs, Scale(8000, 1.0, mtu)) for mtu in (9000, 1500))
    assert small.packet_hops_per_s == pytest.approx(large.packet_hops_per_s * 8960 / 1460)


def test_every_port_of_clos96_counts_once_for_each_switch_on_its_way() -> None:
    prepared = PREPARED["clos96.yaml"]
    load = peak_load(prepared.fabric, prepared.jobs, Scale(32000, 2.0))
    assert load.packet_hops_per_s == pytest.approx(48 * 3 * 6.25e6 / (8 * 8960))


@given(st.floats(1, 1e6), st.floats(0.5, 8), st.floats(1, 1e12))
def test_sizes_come_back_as_they_were(bandwidth: float, time: float, size: float) -> None:
    scale = Scale(bandwidth, time)
    assert scale.unscale_size(scale.size(size)) == pytest.approx(size)
