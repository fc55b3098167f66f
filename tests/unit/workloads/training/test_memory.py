"""What stays in the memory of a GPU: ZeRO's own examples."""

from __future__ import annotations

import pytest

from workloads.training.gpus import GPUS
from workloads.training.layout import ParallelLayout
from workloads.training.plan import Sharding, TrainingPlan
from workloads.training.shape_files import shapes
from workloads.training.transformer import Transformer

SEVEN_BILLION = Transformer("", "", 32, 4096, 32, 32, 128, 16384, 50257, gated=False, tied=True, biases=True)


@pytest.mark.parametrize(
    ("sharding", "gigabytes"), [("none", 120.0), ("zero-1", 31.4), ("zero-2", 16.6), ("zero-3", 1.88)]
)
def test_zero_divides_as_in_its_paper(sharding: Sharding, gigabytes: float) -> None:
    """7.5 billion parameters on 64 GPUs (Rajbhandari et al., SC'20, figure 1), scaled to the 6.66 of this model."""
    plan = TrainingPlan(SEVEN_BILLION, GPUS["a100"], ParallelLayout(64), 2048, 1, sharding=sharding)
    assert plan.state_bytes / SEVEN_BILLION.parameters * 7.5 == pytest.approx(gigabytes, rel=0.01)


def test_a_stage_keeps_its_part() -> None:
    whole = TrainingPlan(shapes()["llama3-70b"], GPUS["h100"], ParallelLayout(8, 8), 4096, 4, sharding="none")
    staged = TrainingPlan(shapes()["llama3-70b"], GPUS["h100"], ParallelLayout(32, 8, 4), 4096, 4, sharding="none")
    assert staged.state_bytes == pytest.approx(whole.state_bytes / 4, rel=0.05)


def test_experts_on_one_rank_each_are_not_divided() -> None:
    shape = shapes()["mixtral-8x7b"]
    plan = TrainingPlan(shape, GPUS["h100"], ParallelLayout(8, expert=8), 4096, 4)
    assert plan.state_bytes == 16 * plan.expert_parameters(0) + (4 + 12 / 8) * plan.dense_parameters(0)
