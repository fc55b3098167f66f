"""Iterations alone: nothing but compute costs compute, and each cost shows where it should."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workloads.training.gpus import GPUS
from workloads.training.iteration import Cluster, iteration_alone
from workloads.training.layout import ParallelLayout
from workloads.training.plan import TrainingPlan
from workloads.training.schedules import Schedule
from workloads.training.shape_files import shapes

CLUSTER = Cluster(8, 400e9)
LLAMA = TrainingPlan(shapes()["llama3-8b"], GPUS["h100"], ParallelLayout(1), 8192, 4)


def test_one_gpu_alone_reaches_its_share_of_peak() -> None:
    found = iteration_alone(LLAMA, CLUSTER)
    assert found.mfu * found.seconds / found.pipeline.seconds == pytest.approx(GPUS["h100"].share_bf16)


def test_recomputation_takes_a_third_longer_and_counts_for_nothing() -> None:
    once, twice = (iteration_alone(replace(LLAMA, recompute=each), CLUSTER) for each in ("none", "full"))
    assert twice.pipeline.seconds == pytest.approx(4 / 3 * once.pipeline.seconds)


def test_a_pipeline_has_the_bubble_of_its_schedule() -> None:
    of = replace(LLAMA, shape=replace(LLAMA.shape, vocabulary=0), layout=ParallelLayout(4, pipeline=4), microbatches=8)
    fast = Cluster(8, 1e18)
    found = iteration_alone(replace(of, gpu=replace(of.gpu, nvlink=1e18)), fast)
    assert found.pipeline.bubble == pytest.approx(3 / 8, rel=1e-6)


def test_tensor_groups_that_travel_beside_compute_cost_nothing_while_they_are_shorter() -> None:
    of = replace(LLAMA, layout=ParallelLayout(8, tensor=8))
    hidden = iteration_alone(replace(of, overlap_tensor=True), CLUSTER)
    assert hidden.pipeline.seconds < iteration_alone(of, CLUSTER).pipeline.seconds
    assert hidden.pipeline.seconds == pytest.approx(iteration_alone(LLAMA, CLUSTER).pipeline.seconds / 8)


def test_gradients_that_nothing_hides_take_the_time_of_their_ring() -> None:
    of = replace(LLAMA, layout=ParallelLayout(16, tensor=8), overlap_gradients=False, sharding="none")
    found = iteration_alone(of, CLUSTER)
    per_gpu = of.dense_parameters(0) * 2
    assert found.gradients_s == pytest.approx(2 * (1 / 2) * 8 * per_gpu / 400e9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layout": ParallelLayout(64, tensor=64)}, "tensor is 64, expected a divisor of 32 heads"),
        ({"layout": ParallelLayout(2, expert=2)}, "expert is 2, and Llama 3 8B has no experts, expected 1"),
        ({"layout": ParallelLayout(36, pipeline=36)}, "36 stages of 1 chunks for 32 layers, expected at most 34"),
        ({"precision": "int4"}, "precision is 'int4', expected bf16 or fp8"),
        ({"gpu": GPUS["a100"], "precision": "fp8"}, "A100 SXM 80 GB does not have, expected bf16"),
        ({"sharding": "zero-9"}, "sharding is 'zero-9', expected one of: none, zero-1"),
        ({"microbatches": 0}, "microbatches is 0, expected at least 1"),
        ({"layout": ParallelLayout(3, context=3)}, "context is 3, expected a divisor of 8192 tokens"),
        (
            {"schedule": Schedule("interleaved", 2), "layout": ParallelLayout(8, pipeline=8)},
            "microbatches is 4 with 8 stages, expected a multiple of 8",
        ),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(LLAMA, **change)  # type: ignore[arg-type]
