"""The scale: within the budget at the peak, and no smaller than it must be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.api import prepare
from testbed.experiment import Scale
from testbed.scale import DILATIONS, MAX_LINK_RATE, MIN_CHUNK_PACKETS, choose_scale, peak_load
from testbed.scenario import bundled

PREPARED = {name: prepare(name) for name in bundled()}
BUDGETS = st.floats(500, 1e6)


@given(st.sampled_from(sorted(PREPARED)), BUDGETS)
def test_the_peak_is_always_within_the_budget(name: str, budget: float) -> None:
    prepared = PREPARED[name]
    scale = choose_scale(prepared.fabric, prepared.jobs, budget)
    assert peak_load(prepared.fabric, prepared.jobs, scale, budget).share <= 1 + 1e-9


@given(st.sampled_from(sorted(PREPARED)), BUDGETS)
def test_the_scale_is_rounded_by_less_than_a_tenth(name: str, budget: float) -> None:
    prepared = PREPARED[name]
    scale = choose_scale(prepared.fabric, prepared.jobs, budget)
    fastest = max(link.capacity for link in prepared.fabric.network_links)
    share = peak_load(prepared.fabric, prepared.jobs, scale, budget).share
    assert max(share, fastest / MAX_LINK_RATE / scale.bandwidth, 1 / scale.bandwidth) >= 1 / 1.1 - 1e-9


@given(st.sampled_from(sorted(PREPARED)), BUDGETS)
def test_dilation_leaves_each_chunk_enough_packets_or_is_the_largest_there_is(name: str, budget: float) -> None:
    prepared = PREPARED[name]
    scale = choose_scale(prepared.fabric, prepared.jobs, budget)
    moves = [move for job in prepared.jobs for phase in job.phases for move in phase.transfers]
    smallest = min(move.lead if move.after else move.bytes for move in moves)
    packets = scale.size(smallest) / (scale.mtu - 40)
    assert scale.time in DILATIONS
    assert packets >= MIN_CHUNK_PACKETS or scale.time == DILATIONS[-1]


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
