"""Experts of a mixture: Lina's GPUs for them, who gets how many tokens, and what that makes of a job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.build import JobError, JobSpec, build_jobs
from workloads.communication.experts import Experts, devices_of, hosts_of_packed, pipelined
from workloads.job import Job, Straggler
from workloads.models.catalogue import CATALOGUE


def test_linas_devices_for_experts() -> None:
    assert devices_of([8, 4, 2, 2], 8) == [4, 2, 1, 1]
    assert devices_of([50, 30, 12, 8], 4) == [2, 1, 1, 0]
    assert hosts_of_packed([2, 1, 1, 0], [50, 30, 12, 8]) == {3: 2}


@given(st.lists(st.integers(0, 100), min_size=1, max_size=16).filter(any), st.integers(1, 64))
def test_devices_add_up_and_follow_popularity(popularity: list[int], devices: int) -> None:
    counts = devices_of(popularity, devices)
    assert sum(counts) == devices
    for one in range(len(counts)):
        assert abs(counts[one] - devices * popularity[one] / sum(popularity)) < 1
        assert all(counts[one] >= counts[other] for other in range(len(counts)) if popularity[one] > popularity[other])
    assert set(hosts_of_packed(counts, popularity)) == {place for place, count in enumerate(counts) if count == 0}


def test_gpus_in_proportion_to_popularity_have_equally_much_to_do() -> None:
    assert Experts((8, 4, 2, 2), placement="popular").tokens(8) == (0.125,) * 8
    assert Experts((8, 4, 2, 2)).tokens(8) == (0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625, 0.0625, 0.0625)
    assert Experts((50, 30, 12, 8), placement="popular").tokens(4) == pytest.approx((0.25, 0.25, 0.30, 0.20))


def test_a_wrong_estimate_costs_until_it_is_corrected() -> None:
    wrong = Experts((8, 4, 2, 2), routed=(2, 2, 4, 8), placement="popular")
    assert max(wrong.tokens(8)) == pytest.approx(0.5)  # one GPU for what takes half of the tokens
    assert replace(wrong, corrected=True).tokens(8) == (0.125,) * 8


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12).filter(any), st.integers(1, 24), st.booleans(), st.data())
def test_every_token_is_computed_somewhere(
    popularity: list[float], gpus: int, corrected: bool, data: st.DataObject
) -> None:
    routed = data.draw(st.permutations(popularity))
    for placement in ("even", "popular"):
        tokens = Experts(tuple(popularity), tuple(routed), placement, corrected).tokens(gpus)
        assert len(tokens) == gpus
        assert sum(tokens) == pytest.approx(1.0)
        assert min(tokens) >= 0.0


def moe_job(experts: Experts | None, **more: Any) -> Job:
    fabric = clos(hosts=4, gpus_per_host=1, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
    return build_jobs([JobSpec("one", "moe", 4, experts=experts, **more)], fabric)[0]


def test_a_popular_expert_is_sent_more_and_sends_as_much_back_and_computes_longer() -> None:
    job = moe_job(Experts((5, 1, 1, 1)))
    size = CATALOGUE["moe"].phases[0].bytes

    def moved(phase: int, source: str, target: str) -> float:
        ends = f":{source}n0p0>{target}n0p0"
        return sum(each.bytes for each in job.phases[phase].transfers if each.flow.endswith(ends))

    for there, back in ((0, 1), (2, 3)):
        assert moved(there, "h1", "h0") == moved(back, "h0", "h1") == pytest.approx(size * 5 / 8)
        assert moved(there, "h0", "h1") == moved(back, "h1", "h0") == pytest.approx(size * 1 / 8)
    share = CATALOGUE["moe"].expert_share
    assert job.stragglers[0] == Straggler("h0g0", pytest.approx(1 + share * 1.5))
    assert moe_job(Experts((1, 1, 1, 1))).stragglers == ()


def test_inference_is_a_forward_pass() -> None:
    training, inference = moe_job(None), moe_job(Experts((1, 1, 1, 1), inference=True))
    assert [phase.collective for phase in inference.phases] == ["alltoall", "alltoall"]
    assert inference.flops == pytest.approx(training.flops / 3)
    assert inference.compute_s == pytest.approx(training.compute_s / 3)
    small = moe_job(Experts((1, 1, 1, 1), inference=True), communication_bytes=8e6)
    assert sum(flow.bytes for flow in small.flows) == pytest.approx(8e6 * 4 * 3 / 4)


@pytest.mark.parametrize(
    ("experts", "said"),
    [
        (Experts((0.0, 0.0)), r"experts\.popularity must be numbers of at least 0, one of them above 0"),
        (Experts((1, 2), routed=(1,)), r"experts\.routed must have as many numbers as experts\.popularity, 2"),
        (Experts((1, 2), placement="odd"), r"unknown experts\.placement 'odd', expected one of: even, popular"),
    ],
)
def test_experts_that_cannot_be(experts: Experts, said: str) -> None:
    with pytest.raises(JobError, match=said):
        moe_job(experts)


def test_only_a_mixture_has_experts() -> None:
    fabric = clos(hosts=2, gpus_per_host=1, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
    with pytest.raises(JobError, match="experts needs a mixture of experts, model 'bert' is none"):
        build_jobs([JobSpec("one", "bert", 2, experts=Experts((1, 1)))], fabric)


@given(st.integers(1, 40), st.sampled_from([0.3, 0.6, 1.0]))
def test_micro_ops_move_the_same_bytes_and_compute_as_long(pieces: int, share: float) -> None:
    model = CATALOGUE["moe"]
    exchange = model.phases[0].bytes
    cut = pipelined(model.phases, share, model.expert_layers, exchange / model.expert_layers / pieces)
    assert sum(each.share for each in cut) == pytest.approx(1.0)
    moved = sum(each.bytes + each.back_bytes for each in cut if each.collective == "alltoall")
    assert moved == pytest.approx(4 * exchange)
    assert cut[-1] == model.phases[-1]
    assert len(cut) == (len(model.phases) if pieces == 1 else len(model.phases) + 2 * pieces)
    assert all(each.overlap == 1.0 for each in cut if each.back_bytes)


def test_while_one_micro_op_is_computed_the_next_goes_and_the_one_before_comes_back() -> None:
    fabric = clos(hosts=2, gpus_per_host=2, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
    experts = Experts((1.0,), chunk=CATALOGUE["moe"].phases[0].bytes / CATALOGUE["moe"].expert_layers / 3)
    (job,) = build_jobs([JobSpec("moe", "moe", placement=fabric.gpus, experts=experts)], fabric)
    first, *steps, last = job.phases[:5]
    piece = first.transfers[0].bytes
    assert [phase.transfers[0].bytes / piece for phase in (*steps, last)] == pytest.approx([1.0, 2.0, 1.0, 1.0])
    assert [phase.compute_s > 0 for phase in (first, *steps, last)] == [True, True, True, True, False]


def test_a_micro_op_without_bytes_is_refused() -> None:
    assert Experts((1.0,), chunk=0.0).problem() == "experts.chunk must be more than 0 bytes"
