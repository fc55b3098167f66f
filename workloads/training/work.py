"""How long a stage computes for a microbatch: FLOPs over what the GPU reaches, and what waits inside a host.

Inside a host ranks of a tensor group add up activations twice per layer and pass (Shoeybi et al., Megatron-LM, 2019,
section 3); nothing hides that, unless the plan says so. Attention that is not fused moves every score through memory.
Where layer times were measured they stand in for FLOPs and scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from workloads.training.layer_times import LayerTimes, PassTimes
from workloads.training.plan import ACTIVATION_BYTES, TrainingPlan
from workloads.training.schedules import Operation
from workloads.training.transformer import BACKWARD

SCORE_BYTES: Final = 13.0
"""Moved through memory per score of an attention that is not fused, forward: written (2),
read and written by softmax (4), read and written with a mask by dropout (5), read again (2); what stays of it is that
of Korthikanti et al. (MLSys 2023, section 4.1). Twice that backward."""
SUMS_PER_LAYER: Final = 2
"""Allreduces of a tensor group in a layer and pass: after attention and after the feed-forward block."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Seconds of a pass of one microbatch through a part of a model on one GPU: computing, and in its tensor group."""

    compute_s: float
    tensor_s: float

    @property
    def seconds(self) -> float:
        """Both together: the next layer needs the sum."""
        return self.compute_s + self.tensor_s

    def __add__(self, other: Pass) -> Pass:
        return Pass(self.compute_s + other.compute_s, self.tensor_s + other.tensor_s)

    def times(self, factor: float) -> Pass:
        """``factor`` times as long."""
        return Pass(factor * self.compute_s, factor * self.tensor_s)


def work_of(plan: TrainingPlan, stage: int, operation: Operation) -> Pass:
    """Return how long ``operation`` of ``stage`` takes, without what goes between hosts."""
    down = plan.schedule.two_way and operation.chunk == 1
    part = plan.part(plan.layout.pipeline - 1 - stage if down else stage, operation.chunk)
    forward = forward_pass(plan, part)
    if operation.kind == "forward":
        return forward
    compute_s = _compute(plan, part).backward_s
    if operation.kind == "weights":
        return Pass(compute_s / BACKWARD, 0.0)
    if plan.schedule.splits_backward:
        compute_s /= BACKWARD
    return Pass(compute_s, forward.tensor_s) + _again(plan, part, forward)


def _again(plan: TrainingPlan, part: int, forward: Pass) -> Pass:
    """What the backward pass computes once more."""
    if plan.recompute == "full":
        return forward
    if plan.recompute == "selective":
        layers = len(plan.layers(part))
        flops = layers * plan.tokens * plan.shape.attention_flops(plan.sequence) / plan.layout.tensor
        return Pass(flops / plan.gpu.achieved(plan.precision) + layers * _scores_s(plan), 0.0)
    return Pass(0.0, 0.0)


def forward_pass(plan: TrainingPlan, part: int) -> Pass:
    """A forward pass of a microbatch through ``part``, the output layer with the last one."""
    compute_s = _compute(plan, part).forward_s
    sums_s = len(plan.layers(part)) * tensor_s(plan)
    return Pass(compute_s, max(0.0, sums_s - compute_s) if plan.overlap_tensor else sums_s)


def _compute(plan: TrainingPlan, part: int) -> PassTimes:
    """How long a microbatch computes in ``part``."""
    return _published(plan, part) if plan.layer_times is None else _measured(plan, part, plan.layer_times)


def _measured(plan: TrainingPlan, part: int, times: LayerTimes) -> PassTimes:
    passes = [times.layer(experts=plan.shape.has_experts(layer)) for layer in plan.layers(part)]
    if part == plan.parts - 1:
        passes.append(times.output)
    return PassTimes(sum(each.forward_s for each in passes), sum(each.backward_s for each in passes))


def _published(plan: TrainingPlan, part: int) -> PassTimes:
    shape, layers = plan.shape, plan.layers(part)
    flops = sum(shape.layer_flops(layer, plan.sequence) for layer in layers)
    if part == plan.parts - 1:
        flops += shape.head_flops
    compute_s = plan.tokens * flops / plan.layout.tensor / plan.gpu.achieved(plan.precision)
    compute_s += len(layers) * _scores_s(plan)
    return PassTimes(compute_s, BACKWARD * compute_s)


def _scores_s(plan: TrainingPlan) -> float:
    """Scores of one layer through memory, forward; 0 for fused attention."""
    if plan.attention == "fused":
        return 0.0
    scores = plan.tokens * plan.sequence * plan.shape.heads / plan.layout.tensor
    return SCORE_BYTES * scores / plan.gpu.memory_rate


def tensor_s(plan: TrainingPlan) -> float:
    """Seconds that the sums of one layer and pass take inside a host, in a ring over NVLink."""
    size = plan.tokens * plan.shape.hidden * ACTIVATION_BYTES
    return SUMS_PER_LAYER * plan.gpu.ring_s(plan.layout.tensor, size)
