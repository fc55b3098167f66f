"""What ranks exchange in an iteration: every collective with its group and its bytes.

Sizes are those of :mod:`workloads.communication.collectives`: of an allreduce, reduce-scatter or all-gather the whole
buffer, of an all-to-all what a rank hands in, of a message between stages what a rank sends. Collectives of a tensor
group are among them, though they seldom leave a host.

Gradients of dense weights are added up over the replicas and the ranks of a context group; ZeRO-1 and 2 scatter them
and gather the parameters afterwards (Rajbhandari et al., ZeRO, SC'20, section 7), ZeRO-3 gathers parameters for every
pass: 3/2 of the bytes. ``hybrid`` shards inside a host and adds up over the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from workloads.training.gpus import PRECISIONS
from workloads.training.layout import Group
from workloads.training.plan import ACTIVATION_BYTES, GRADIENT_BYTES, PARAMETER_BYTES, TrainingPlan
from workloads.training.work import SUMS_PER_LAYER

Moment = Literal["forward", "backward", "end", "begin"]
"""With every pass of a microbatch, after the last backward pass, or before the first forward pass."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """``times`` a ``collective`` of a ``group``, of ``bytes`` per rank each, at ``moment``; ``what`` travels."""

    what: str
    collective: str
    group: Group
    bytes: float
    times: int
    moment: Moment

    @property
    def total(self) -> float:
        """Bytes of all of them."""
        return self.times * self.bytes


def exchanges(plan: TrainingPlan, stage: int) -> tuple[Exchange, ...]:
    """Return what a rank of ``stage`` takes part in, in one iteration; collectives of one rank are left out."""
    found = (each for part in plan.stage_parts(stage) for each in exchanges_of_part(plan, part))
    joined: dict[tuple[str, str, Group, float, Moment], int] = {}
    for each in (*found, *_between_stages(plan, stage)):
        if each.bytes > 0 and each.times > 0:
            key = each.what, each.collective, each.group, each.bytes, each.moment
            joined[key] = joined.get(key, 0) + each.times
    return tuple(
        Exchange(what, collective, group, size, times, moment)
        for (what, collective, group, size, moment), times in joined.items()
    )


def passes_of_part(plan: TrainingPlan) -> int:
    """Microbatches that go through a part of the model on one stage: half where two stages hold it."""
    return plan.microbatches // 2 if plan.schedule.two_way else plan.microbatches


def exchanges_of_part(plan: TrainingPlan, part: int) -> Iterator[Exchange]:
    """Yield what a rank exchanges for ``part`` of the model on one stage, but for what goes from stage to stage."""
    layout, layers, microbatches = plan.layout, len(plan.layers(part)), passes_of_part(plan)
    if layout.tensor > 1:
        size = plan.tokens * plan.shape.hidden * ACTIVATION_BYTES
        again = 2 if plan.recompute == "full" else 1
        sums = SUMS_PER_LAYER * layers * microbatches
        yield Exchange("activations", "allreduce", "tensor", size, sums, "forward")
        yield Exchange("activations", "allreduce", "tensor", size, again * sums, "backward")
    if layout.context > 1:
        yield from _context(plan, layers, microbatches)
    if layout.expert > 1:
        count = sum(plan.shape.has_experts(layer) for layer in plan.layers(part)) * microbatches
        for moment, again in (("forward", 1), ("backward", 2 if plan.recompute == "full" else 1)):
            yield Exchange("tokens to experts", "alltoall", "expert", dispatch_bytes(plan), again * count, moment)  # type: ignore[arg-type]
            yield Exchange("tokens from experts", "alltoall", "expert", combine_bytes(plan), again * count, moment)  # type: ignore[arg-type]
    yield from _weights(plan, plan.dense_parameters(part), "gradient", microbatches)
    yield from _weights(plan, plan.expert_parameters(part), "expert-gradient", microbatches)


def _context(plan: TrainingPlan, layers: int, microbatches: int) -> Iterator[Exchange]:
    """Keys and values of the other ranks' tokens, gathered for every layer, and their gradients scattered."""
    width = plan.shape.key_value_width / (plan.layout.tensor if plan.shape.latent is None else 1)
    size = plan.microbatch * plan.sequence * width * ACTIVATION_BYTES
    count = layers * microbatches
    yield Exchange("keys and values", "all-gather", "context", size, count, "forward")
    yield Exchange("keys and values", "all-gather", "context", size, count, "backward")
    yield Exchange("their gradients", "reduce-scatter", "context", size, count, "backward")


def dispatch_bytes(plan: TrainingPlan) -> float:
    """What a rank hands in for the experts of one layer and microbatch: each token once per expert."""
    return _tokens_sent(plan) * PRECISIONS[plan.precision]


def combine_bytes(plan: TrainingPlan) -> float:
    """What comes back for them."""
    return _tokens_sent(plan) * ACTIVATION_BYTES


def _tokens_sent(plan: TrainingPlan) -> float:
    experts = plan.shape.experts
    return 0.0 if experts is None else plan.tokens / plan.layout.tensor * experts.per_token * plan.shape.hidden


def _weights(plan: TrainingPlan, parameters: float, group: Group, microbatches: int) -> Iterator[Exchange]:
    ranks = plan.layout.data * plan.layout.context
    if group == "expert-gradient":
        ranks //= plan.layout.expert
    if ranks < 2 or parameters == 0:
        return
    gradient, gathered = parameters * GRADIENT_BYTES[plan.gradients], parameters * PARAMETER_BYTES
    if plan.sharding in ("none", "hybrid"):
        yield Exchange("gradients", "allreduce", group, gradient, 1, "end")
    elif plan.sharding == "zero-3":
        yield Exchange("parameters", "all-gather", group, gathered, microbatches, "forward")
        yield Exchange("parameters", "all-gather", group, gathered, microbatches, "backward")
        yield Exchange("gradients", "reduce-scatter", group, gradient, microbatches, "backward")
    else:
        yield Exchange("gradients", "reduce-scatter", group, gradient, 1, "end")
        yield Exchange("parameters", "all-gather", group, gathered, 1, "begin")


def _between_stages(plan: TrainingPlan, stage: int) -> Iterator[Exchange]:
    """Activations to the next stage and their gradients to the one before, of every microbatch and chunk."""
    size = stage_bytes(plan)
    for moment, count in (("forward", _sends(plan, stage, 1)), ("backward", _sends(plan, stage, -1))):
        what = "activations" if moment == "forward" else "their gradients"
        yield Exchange(what, "point-to-point", "pipeline", size, count, moment)  # type: ignore[arg-type]


def stage_bytes(plan: TrainingPlan) -> float:
    """What a rank passes to its peer of the next stage for one microbatch: its share of the activations."""
    return plan.tokens * plan.shape.hidden * ACTIVATION_BYTES / plan.layout.tensor


def _sends(plan: TrainingPlan, stage: int, step: int) -> int:
    """How often a rank of ``stage`` passes on results; ``step`` 1 forward, -1 backward."""
    stages, microbatches = plan.layout.pipeline, passes_of_part(plan)
    if stages == 1:
        return 0
    if plan.schedule.two_way:
        return microbatches * ((stage + step in range(stages)) + (stage - step in range(stages)))
    last = stages - 1 if step == 1 else 0
    return microbatches * (plan.chunks - (stage == last))
