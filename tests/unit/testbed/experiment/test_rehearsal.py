"""From the steps of a rehearsal: what the machine carries, which rate comes next, and who disturbed it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from testbed.experiment.capacity import MTUS
from testbed.experiment.rehearsal import ALLOWED_BUSY, FASTEST_RISE, MOST_BEYOND, MOST_STEPS, Rehearsal, Step, next_step

IDLE = Step(8000.0, 9000, 0.0, 0.05, 0.01)


def rehearsal(*steps: Step) -> Rehearsal:
    return Rehearsal("nftables", (IDLE, *steps))


def at(load: float, busy: float, others: float = 0.02, bandwidth: float = 4000.0, mtu: int = 9000) -> Step:
    return Step(bandwidth, mtu, load, busy, others)


def test_the_step_nearest_to_what_is_allowed_says_what_a_packet_costs() -> None:
    found = rehearsal(at(10_000, 0.25), at(30_000, 0.95), at(20_000, ALLOWED_BUSY + 0.1)).capacity
    assert found.of(9000) == pytest.approx(20_000 * (ALLOWED_BUSY - 0.05) / (ALLOWED_BUSY + 0.05))
    assert found.datapath == "nftables"


def test_a_capacity_is_not_far_beyond_what_was_tried() -> None:
    assert rehearsal(at(10_000, 0.45)).capacity.of(9000) == pytest.approx(10_000 * (ALLOWED_BUSY - 0.05) / 0.4)
    assert rehearsal(at(10_000, 0.06)).capacity.of(9000) == MOST_BEYOND * 10_000


def test_each_packet_size_has_its_own_cost_and_others_that_of_the_nearest() -> None:
    found = rehearsal(at(10_000, 0.45), at(30_000, 0.55, mtu=1500)).capacity
    assert found.of(9000) == pytest.approx(10_000 * (ALLOWED_BUSY - 0.05) / 0.4)
    assert found.of(1500) == pytest.approx(30_000 * (ALLOWED_BUSY - 0.05) / 0.5)
    assert found.of(2250) == pytest.approx(found.of(1500) * MTUS[2250] / MTUS[1500])
    assert found.of(6000) == pytest.approx(found.of(9000) * MTUS[6000])


@given(st.floats(1e-9, 1e-4), st.floats(0.0, 0.2), st.lists(st.floats(100.0, 1e6), min_size=1, max_size=5))
def test_where_every_packet_costs_the_same_the_capacity_is_what_that_leaves(
    cost: float, base: float, loads: list[float]
) -> None:
    # Below a thousandth of the CPU a step says nothing of the cost, and it is the nearest only if all are small.
    assume(cost * min(loads) >= 1e-3 or base + cost * max(loads) <= ALLOWED_BUSY)
    steps = [at(0.0, base), *(at(load, base + cost * load) for load in loads)]
    found = Rehearsal("userspace", tuple(steps)).capacity.of(9000)
    most = max(loads)
    assert found == pytest.approx(min((ALLOWED_BUSY - base) / max(cost, 1e-3 / most), MOST_BEYOND * most), rel=1e-6)


def test_a_step_that_others_disturbed_does_not_choose_the_scale_if_there_is_another() -> None:
    quiet, disturbed = at(10_000, 0.31), at(20_000, 0.99, others=0.4)
    assert rehearsal(quiet, disturbed).capacity == rehearsal(quiet).capacity
    assert rehearsal(quiet).disturbed == ""
    told = "other processes took up to 40% of the CPU while the scale was measured"
    assert rehearsal(quiet, disturbed).disturbed == told


def test_where_every_step_was_disturbed_the_run_s_own_share_counts_and_it_is_said() -> None:
    loud = Rehearsal("nftables", (replace(IDLE, others=0.5), at(10_000, 0.31, others=0.5)))
    assert loud.capacity == rehearsal(at(10_000, 0.31)).capacity
    assert "up to 50%" in loud.disturbed


def test_nothing_sent_says_nothing() -> None:
    with pytest.raises(ValueError, match="nothing was sent"):
        _ = rehearsal().capacity
    with pytest.raises(ValueError, match="busy before anything is sent"):
        _ = Rehearsal("nftables", (at(0, 0.7), at(10_000, 0.9))).capacity


def test_rates_rise_towards_what_is_allowed_but_not_by_leaps() -> None:
    assert next_step([IDLE, at(1_000, 0.06)], fastest=100.0) == (pytest.approx(4000 / FASTEST_RISE), 9000)
    assert next_step([IDLE, at(1_000, 0.285)], fastest=100.0) == (pytest.approx(4000 / 2), 9000)
    assert next_step([IDLE, at(1_000, 0.325)], fastest=3000.0) == (3000.0, 9000)
    assert next_step([IDLE, at(1_000, 0.55)], fastest=100.0) is None


def test_rates_fall_where_a_step_was_too_much() -> None:
    assert next_step([IDLE, at(1_000, 0.99)], fastest=100.0) == (pytest.approx(4000 * 2), 9000)
    assert next_step([IDLE, at(1_000, 0.99)], fastest=4000.0) == (pytest.approx(4000 * 2), 9000)
    assert next_step([IDLE, at(1_000, 0.2), at(9_000, 0.8, mtu=1500)], fastest=4000.0) == (4000.0, 3000)


def test_once_links_cannot_be_faster_packets_become_smaller() -> None:
    assert next_step([IDLE, at(1_000, 0.325)], fastest=4000.0) == (4000.0, 4500)
    assert next_step([IDLE, at(1_000, 0.06)], fastest=4000.0) == (4000.0, 2250)
    assert next_step([IDLE, at(1_000, 0.5)], fastest=4000.0) is None
    assert next_step([IDLE, at(1_000, 0.1, mtu=1500)], fastest=4000.0) is None


@given(st.floats(1e-9, 1e-4))
def test_a_few_steps_are_enough_on_any_machine(cost: float) -> None:
    steps, following = [IDLE], (8000.0, 9000)
    while following is not None:
        bandwidth, mtu = following
        hops = 1e8 / bandwidth * 8960 / (mtu - 40)
        steps.append(Step(bandwidth, mtu, hops, min(1.0, 0.05 + cost * hops / MTUS[mtu]), 0.0))
        following = next_step(steps, fastest=1000.0)
    assert len(steps) <= MOST_STEPS + 1
    if len(steps) <= MOST_STEPS and steps[-1].mtu == 9000 and steps[-1].bandwidth > 1000.0:
        assert abs(steps[-1].busy - ALLOWED_BUSY) <= 0.07 + 1e-9


def test_the_evidence_is_a_document() -> None:
    document = rehearsal(at(10_000, 0.31)).document()
    assert document["allowed_busy"] == ALLOWED_BUSY
    assert [step["bandwidth"] for step in document["steps"]] == [8000.0, 4000.0]
