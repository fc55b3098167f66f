"""Bytes per collective and rank: six layouts counted by hand from the papers' formulas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workloads.training.expert_routes import copies_to_hosts
from workloads.training.gpus import GPUS
from workloads.training.layout import ParallelLayout
from workloads.training.plan import TrainingPlan
from workloads.training.schedules import Schedule
from workloads.training.shape_files import shapes
from workloads.training.traffic import Exchange, exchanges
from workloads.training.transformer import Experts, Transformer

SHAPE = Transformer("small", "", 8, 512, 8, 4, 64, 2048, 1000)
"""Eight layers of 2 h d (8 + 4) + 3 h f + 2 h parameters."""
LAYER = 2 * 512 * 64 * 12 + 3 * 512 * 2048 + 2 * 512
ENDS = 1000 * 512
NORM = 512


def plan(layout: ParallelLayout, **more: object) -> TrainingPlan:
    given: dict[str, object] = {"sequence": 128, "microbatches": 4, "sharding": "none", **more}
    return TrainingPlan(SHAPE, GPUS["a100"], layout, **given)  # type: ignore[arg-type]


def found(of: TrainingPlan, stage: int = 0) -> dict[tuple[str, str, str], float]:
    """(what, collective, moment) -> bytes of an iteration."""
    total: dict[tuple[str, str, str], float] = {}
    for each in exchanges(of, stage):
        key = each.what, each.collective, each.moment
        total[key] = total.get(key, 0.0) + each.total
    return total


def test_data_parallel_ranks_add_up_all_gradients() -> None:
    assert found(plan(ParallelLayout(4))) == {("gradients", "allreduce", "end"): 2 * (8 * LAYER + 2 * ENDS + NORM)}


def test_tensor_parallel_ranks_add_up_activations_twice_per_layer_and_pass() -> None:
    once = 4 * 8 * 2 * 128 * 512 * 2
    assert found(plan(ParallelLayout(2, tensor=2))) == {
        ("activations", "allreduce", "forward"): once,
        ("activations", "allreduce", "backward"): once,
    }


def test_stages_pass_on_their_share_of_activations() -> None:
    layout = ParallelLayout(8, tensor=2, pipeline=4)
    size = 4 * 128 * 512 * 2 / 2
    kinds = [("activations", "point-to-point", "forward"), ("their gradients", "point-to-point", "backward")]
    sent = [[found(plan(layout), stage).get(kind, 0.0) for kind in kinds] for stage in range(4)]
    assert sent == [[size, 0.0], [size, size], [size, size], [0.0, size]]


def test_interleaved_stages_pass_on_every_chunk() -> None:
    of = plan(ParallelLayout(4, pipeline=4), schedule=Schedule("interleaved", 2))
    sends = [found(of, stage)["activations", "point-to-point", "forward"] for stage in range(4)]
    assert sends == [2 * 4 * 128 * 512 * 2] * 3 + [4 * 128 * 512 * 2]


def test_zero_1_scatters_gradients_and_gathers_parameters_once() -> None:
    size = 2 * (8 * LAYER + 2 * ENDS + NORM)
    assert found(plan(ParallelLayout(4), sharding="zero-1")) == {
        ("gradients", "reduce-scatter", "end"): size,
        ("parameters", "all-gather", "begin"): size,
    }


def on_the_wire(of: TrainingPlan) -> float:
    """Bytes of an iteration that a rank sends, by the bus factors of nccl-tests, over (n - 1) / n."""
    factors = {"allreduce": 2, "all-gather": 1, "reduce-scatter": 1}
    return sum(factors[each.collective] * each.total for each in exchanges(of, 0))


def test_zero_3_sends_half_as_much_again_as_data_parallelism() -> None:
    of = plan(ParallelLayout(4), microbatches=1)
    assert on_the_wire(replace(of, sharding="zero-3")) == 1.5 * on_the_wire(of)


def test_context_parallel_ranks_gather_keys_and_values() -> None:
    of = found(plan(ParallelLayout(2, context=2)))
    size = 4 * 8 * 128 * (2 * 4 * 64) * 2
    assert of["keys and values", "all-gather", "forward"] == size
    assert of["their gradients", "reduce-scatter", "backward"] == size


def test_experts_get_every_token_once_per_expert() -> None:
    shape = replace(SHAPE, experts=Experts(8, 2, 1024, dense_layers=2))
    of = TrainingPlan(shape, GPUS["h100"], ParallelLayout(4, expert=4), 128, 4, sharding="none", precision="fp8")
    amounts = found(of)
    assert amounts["tokens to experts", "alltoall", "forward"] == 4 * 6 * 128 * 2 * 512 * 1
    assert amounts["tokens from experts", "alltoall", "forward"] == 4 * 6 * 128 * 2 * 512 * 2
    by_group = {each.group: each for each in exchanges(of, 0) if each.what == "gradients"}
    assert set(by_group) == {"gradient"}, "each expert is on one rank: its gradient stays there"


def test_experts_that_several_ranks_hold_exchange_their_gradients() -> None:
    shape = replace(SHAPE, experts=Experts(8, 2, 1024))
    of = TrainingPlan(shape, GPUS["a100"], ParallelLayout(8, expert=4), 128, 4, sharding="none")
    assert Exchange("gradients", "allreduce", "expert-gradient", 2.0 * 8 * 2 * 3 * 512 * 1024, 1, "end") in exchanges(
        of, 0
    )


def test_both_directions_of_dualpipe_together_send_what_one_does() -> None:
    shape, gpu = shapes()["deepseek-v3"], GPUS["h800"]
    layout = ParallelLayout(128, pipeline=16, expert=8)
    one = TrainingPlan(shape, gpu, layout, 4096, 16, schedule=Schedule())
    two = TrainingPlan(shape, gpu, layout, 4096, 16, schedule=Schedule("dualpipe", 2))
    kind = ("activations", "point-to-point", "forward")
    assert sum(found(one, s).get(kind, 0) for s in range(16)) == sum(found(two, s).get(kind, 0) for s in range(16))


@pytest.mark.parametrize(("hosts", "copies"), [(1, 0.0), (2, 2 * 0.5), (8, 4 * 7 / 8)])
def test_tokens_of_deepseek_reach_four_hosts_at_most(hosts: int, copies: float) -> None:
    experts = shapes()["deepseek-v3"].experts
    assert experts is not None
    assert copies_to_hosts(experts, hosts) == copies


def test_tokens_without_a_limit_reach_the_hosts_of_their_experts() -> None:
    """Two of eight experts on two hosts: both on one host with 2 * (4 * 3) / (8 * 7), else on both."""
    assert copies_to_hosts(Experts(8, 2, 1), 2) == pytest.approx((1 * 3 / 7 + 2 * 4 / 7) / 2)


@pytest.mark.parametrize("name", ["llama3-8b", "mixtral-8x7b", "deepseek-v3", "gpt3-175b"])
@pytest.mark.parametrize("pipeline", [1, 4])
def test_ranks_hold_the_model_together(name: str, pipeline: int) -> None:
    """But for the copy of a token embedding that the last stage has as its output layer."""
    shape = shapes()[name]
    layout = ParallelLayout(8 * pipeline, tensor=4, pipeline=pipeline, expert=2 if shape.experts else 1)
    of = TrainingPlan(shape, GPUS["h100"], layout, 4096, 4)
    held = sum(4 * of.dense_parameters(part) + 8 * of.expert_parameters(part) for part in range(pipeline))
    copied = shape.vocabulary * shape.hidden if shape.tied and pipeline > 1 else 0
    assert held == shape.parameters + copied


@pytest.mark.parametrize(
    ("shape", "tensor", "size", "sums"),
    [
        (
            Transformer("", "", 40, 5120, 40, 40, 128, 20480, 50257, gated=False, tied=True, biases=True),
            8,
            20971520,
            80,
        ),
        (Transformer("", "", 32, 4096, 32, 32, 128, 11008, 32000), 2, 16777216, 64),
    ],
)
def test_sums_of_activations_are_those_of_simais_workloads(
    shape: Transformer, tensor: int, size: int, sums: int
) -> None:
    """AICB's files for GPT 13B and Llama 7B: attention and feed-forward blocks, one of each per layer and pass."""
    of = TrainingPlan(shape, GPUS["a100"], ParallelLayout(2 * tensor, tensor), 2048, 1)
    found = [each for each in exchanges(of, 0) if each.group == "tensor"]
    assert [(each.bytes, each.times) for each in found] == [(size, sums), (size, sums)]
