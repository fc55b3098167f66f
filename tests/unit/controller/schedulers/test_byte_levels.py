"""pFabric and PIAS: levels that follow a count of bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.dataplane.rules import RuleBuilder, plans_of
from controller.decision import ByteLevels, ClusterView, JobArrived
from controller.ecmp_hash import with_default_paths
from controller.schedulers.common.message_sizes import message_sizes
from controller.schedulers.pfabric import PFabric, log_thresholds
from controller.schedulers.pias import Pias, equal_share_thresholds
from topologies.fabric import Fabric
from workloads.job import Job, Phase, Transfer

RingMaker = Callable[..., Job]
MixMaker = Callable[[Fabric], list[Job]]


def two_phases(name: str = "a") -> Job:
    phases = (
        Phase(1.0, 0.0, "allreduce", (Transfer("f", 8e8), Transfer("g", 4e8))),
        Phase(1.0, 0.0, "alltoall", (Transfer("f", 2e8), Transfer("g", 0.0))),
    )
    return Job(name, "test", (), phases, (), 1e15, 10)


def test_a_message_is_what_a_flow_sends_in_one_phase() -> None:
    assert message_sizes(two_phases()) == (8e8, 4e8, 2e8)


# pFabric


def test_thresholds_halve_from_the_largest_message_down() -> None:
    assert log_thresholds(8e8, 4) == (1e8, 2e8, 4e8)
    assert log_thresholds(8e8, 3, ratio=4) == (5e7, 2e8)
    assert log_thresholds(8e8, 1) == ()


def test_a_message_rises_as_it_drains(small_fabric: Fabric) -> None:
    decision = PFabric().decide(ClusterView(small_fabric, {"a": two_phases()}, 4), JobArrived("a"))
    levels = decision.byte_levels["a"]
    assert levels.by == "left"
    assert [levels.level(left) for left in (8e8, 4.1e8, 4e8, 2e8, 1e8, 1.0)] == [3, 3, 2, 1, 0, 0]


def test_all_jobs_are_measured_by_the_largest_message(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = {"big": make_ring("big", small_fabric, [0, 2], size=4e9), "a": two_phases()}
    decision = PFabric().decide(ClusterView(small_fabric, jobs, 4), JobArrived("a"))
    assert decision.byte_levels["a"] == decision.byte_levels["big"] == ByteLevels("left", (5e8, 1e9, 2e9))


@pytest.mark.parametrize("ratio", [1.0, 0, 1e4, True, "2"])
def test_a_wrong_ratio_is_refused_in_one_line(ratio: object) -> None:
    with pytest.raises(ValueError, match=f"'ratio' of pfabric must be a number above 1, at most 1000, not '{ratio}'"):
        PFabric(ratio=ratio)  # type: ignore[arg-type]


# PIAS


def test_messages_of_one_size_are_cut_into_equal_parts() -> None:
    assert equal_share_thresholds([4e8] * 3, 4) == pytest.approx((1e8, 2e8, 3e8))


def test_a_large_message_among_small_ones_moves_the_thresholds() -> None:
    assert equal_share_thresholds([1.0, 1.0, 4.0], 2) == pytest.approx((1.0,))
    assert equal_share_thresholds([1.0, 1.0, 4.0], 3) == pytest.approx((2 / 3, 2.0))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(1.0, 1e10), min_size=1, max_size=30), st.integers(1, 8))
def test_each_level_carries_the_same_share_of_the_bytes(sizes: list[float], levels: int) -> None:
    thresholds = equal_share_thresholds(sizes, levels)
    edges = (0.0, *thresholds, max(sizes))
    sent = [sum(min(size, edge) for size in sizes) for edge in edges]
    assert len(thresholds) == levels - 1
    assert list(thresholds) == sorted(thresholds)
    for before, after in pairwise(sent):
        assert after - before == pytest.approx(sum(sizes) / levels, rel=1e-6)


def test_a_message_sinks_as_it_sends(small_fabric: Fabric) -> None:
    job = Job("a", "test", (), (Phase(1.0, 0.0, "allreduce", (Transfer("f", 4e8),)),), (), 1e15, 10)
    levels = Pias().decide(ClusterView(small_fabric, {"a": job}, 4), JobArrived("a")).byte_levels["a"]
    assert levels.by == "sent"
    assert [levels.level(sent) for sent in (0, 1e8, 1.01e8, 2.5e8, 4e8)] == [0, 0, 1, 2, 3]


@pytest.mark.parametrize("thresholds", [[1e6, 2e7], ["1MB", "20MB"], (1_000_000, "0.02GB")])
def test_thresholds_may_be_given_in_bytes_or_with_units(
    small_fabric: Fabric, thresholds: Sequence[float | str]
) -> None:
    decision = Pias(thresholds=thresholds).decide(ClusterView(small_fabric, {"a": two_phases()}), JobArrived("a"))
    assert decision.byte_levels == {"a": ByteLevels("sent", (1e6, 2e7))}


@pytest.mark.parametrize("thresholds", [[], "1MB", [2.0, 1.0], [0.0], [1.0, 1.0], ["1s"], [True], [float("nan")]])
def test_wrong_thresholds_are_refused_in_one_line(thresholds: object) -> None:
    with pytest.raises(ValueError, match="'thresholds' of pias must be a list of ascending sizes, not '"):
        Pias(thresholds=thresholds)  # type: ignore[arg-type]


def test_more_thresholds_than_levels_can_hold_are_refused(small_fabric: Fabric) -> None:
    view = ClusterView(small_fabric, {"a": two_phases()}, 2)
    with pytest.raises(ValueError, match="must hold at most 1 for 2 levels, not 2"):
        Pias(thresholds=[1.0, 2.0]).decide(view, JobArrived("a"))


# Both


@pytest.mark.parametrize("scheduler", [PFabric(), Pias()])
def test_a_job_that_sends_nothing_has_no_entry(small_fabric: Fabric, scheduler: PFabric | Pias) -> None:
    quiet = Job("quiet", "test", ("h0g0",), (Phase(1.0, 0.0, "none"),), (), 1e15, 10)
    assert scheduler.decide(ClusterView(small_fabric, {"quiet": quiet}), JobArrived("quiet")).byte_levels == {}


@pytest.mark.parametrize("scheduler", [PFabric(), Pias()])
def test_the_switches_can_hold_every_decision(
    clos96_fabric: Fabric, make_mix: MixMaker, scheduler: PFabric | Pias
) -> None:
    view = ClusterView(clos96_fabric, {job.name: job for job in make_mix(clos96_fabric)})
    decision = with_default_paths(view, scheduler.decide(view, JobArrived("job1")))
    assert all(decision.trusts_sender(flow) for flow in view.flows)
    plans = plans_of(RuleBuilder(clos96_fabric), clos96_fabric, view.flows, decision, view.level_count)
    assert plans.keys() == {flow.id for flow in view.flows}
