"""What a training plan keeps in the memory of a GPU at the least: parameters, gradients and the optimizer's state.

Mixed precision with Adam (Rajbhandari et al., ZeRO, SC'20, section 3.1): 2 bytes of a parameter, those of its gradient,
and 12 of the optimizer's copy and two moments. ZeRO-1 divides the last among the ranks that hold the same parameters,
ZeRO-2 gradients, too, and ZeRO-3 all. Activations come on top, and depend on what is computed again.
"""

from __future__ import annotations

from typing import Final

from workloads.training.plan import GRADIENT_BYTES, PARAMETER_BYTES, TrainingPlan

OPTIMIZER_BYTES: Final = 12.0
"""Of the optimizer per parameter: a copy and two moments of 4 bytes."""


def state_bytes(plan: TrainingPlan) -> float:
    """Bytes of parameters, gradients and optimizer on the GPU that keeps most of them."""
    return max(_of_stage(plan, stage) for stage in range(plan.layout.pipeline))


def _of_stage(plan: TrainingPlan, stage: int) -> float:
    same = plan.layout.data * plan.layout.context
    parts = plan.stage_parts(stage)
    dense = sum(plan.dense_parameters(part) for part in parts)
    experts = sum(plan.expert_parameters(part) for part in parts)
    return dense * _per_parameter(plan, same) + experts * _per_parameter(plan, same // plan.layout.expert)


def _per_parameter(plan: TrainingPlan, ranks: int) -> float:
    """Bytes of a parameter that ``ranks`` hold between them; ``hybrid`` divides as ZeRO-3 does, at most."""
    whole = ("none", "zero-1", "zero-2", "zero-3").index("zero-3" if plan.sharding == "hybrid" else plan.sharding)
    sizes = (OPTIMIZER_BYTES, GRADIENT_BYTES[plan.gradients], PARAMETER_BYTES)
    return sum(size / ranks if place < whole else size for place, size in enumerate(sizes))
