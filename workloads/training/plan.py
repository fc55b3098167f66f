"""A training job as it is laid out: a model, GPUs, a parallel layout, a schedule; and what each stage holds.

Memory: mixed precision with Adam (Rajbhandari et al., ZeRO, SC'20, section 3.1) keeps 2 bytes of a parameter, those of
its gradient, and 12 of the optimizer's copy and two moments. ZeRO-1 divides the last among the ranks that hold the same
parameters, ZeRO-2 gradients, too, and ZeRO-3 all. Activations come on top, and depend on what is computed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, get_args

from workloads.training.gpus import Gpu
from workloads.training.layer_times import LayerTimes
from workloads.training.layout import ParallelLayout
from workloads.training.schedules import Schedule
from workloads.training.transformer import Transformer

Allreduce = Literal["auto", "ring", "tree"]
"""How gradients are added up between hosts; ``auto``: as NCCL chooses."""
Sharding = Literal["none", "zero-1", "zero-2", "zero-3", "hybrid"]
Recompute = Literal["none", "selective", "full"]
Attention = Literal["fused", "unfused"]
SHARDINGS: Final[tuple[Sharding, ...]] = get_args(Sharding)
RECOMPUTES: Final[tuple[Recompute, ...]] = get_args(Recompute)

MOST_PASSES: Final = 1 << 16
"""Forward passes of an iteration through all parts of a model."""
ACTIVATION_BYTES: Final = 2.0
"""Of an element that stages and ranks pass on: bf16."""
PARAMETER_BYTES: Final = 2.0
"""Of a parameter that ranks gather: bf16."""
GRADIENT_BYTES: Final[Mapping[str, float]] = MappingProxyType({"bf16": 2.0, "fp32": 4.0})
"""Of a gradient that ranks add up."""
OPTIMIZER_BYTES: Final = 12.0
"""Of the optimizer per parameter: a copy and two moments of 4 bytes."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """``microbatches`` of ``microbatch`` sequences of ``sequence`` tokens each go through every replica an iteration.

    ``recompute``: what the backward pass computes again: nothing, scores of attention, or the whole forward pass.
    ``attention``: whether scores stay inside the chip ("fused"), or go to memory and back. ``overlap_gradients``:
    whether gradients travel while others are computed. ``overlap_tensor``: whether sums of a tensor group do, too
    (Jiang et al., MegaScale, NSDI'24, section 3.2). ``gradients``: precision in which they travel. ``layer_times``:
    how long layers compute, where that was measured; without, it follows from the GPU's peak and the share of it that
    training reaches. ``allreduce``: how gradients are added up between hosts. Raises ``ValueError`` naming what does
    not fit.
    """

    shape: Transformer
    gpu: Gpu
    layout: ParallelLayout
    sequence: int
    microbatches: int
    microbatch: int = 1
    schedule: Schedule = field(default_factory=Schedule)
    sharding: Sharding = "zero-1"
    precision: str = "bf16"
    recompute: Recompute = "none"
    attention: Attention = "fused"
    gradients: str = "bf16"
    overlap_gradients: bool = True
    overlap_tensor: bool = False
    layer_times: LayerTimes | None = None
    allreduce: Allreduce = "auto"

    def __post_init__(self) -> None:
        for name in ("sequence", "microbatches", "microbatch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least 1")
        self.gpu.peak(self.precision)
        _require_in("sharding", self.sharding, SHARDINGS)
        _require_in("recompute", self.recompute, RECOMPUTES)
        _require_in("gradients", self.gradients, tuple(GRADIENT_BYTES))
        layout, experts = self.layout, self.shape.experts
        if self.shape.heads % layout.tensor:
            raise ValueError(f"tensor is {layout.tensor}, expected a divisor of {self.shape.heads} heads")
        if self.sequence % layout.context:
            raise ValueError(f"context is {layout.context}, expected a divisor of {self.sequence} tokens")
        if layout.expert > 1 and experts is None:
            raise ValueError(f"expert is {layout.expert}, and {self.shape.title} has no experts, expected 1")
        if experts is not None and experts.count % layout.expert:
            raise ValueError(f"expert is {layout.expert}, expected a divisor of {experts.count} experts")
        if self.parts > self.shape.layers + 2:
            what = f"{layout.pipeline} stages of {self.chunks} chunks for {self.shape.layers} layers"
            raise ValueError(f"{what}, expected at most {self.shape.layers + 2} chunks in all")
        self.schedule.check(layout.pipeline, self.microbatches)
        if self.microbatches * self.parts > MOST_PASSES:
            what = f"microbatches is {self.microbatches} with {self.parts} parts of the model"
            raise ValueError(f"{what}, expected at most {MOST_PASSES // self.parts}")
        if self.layer_times is not None:
            self._check_layer_times(self.layer_times)

    def _check_layer_times(self, times: LayerTimes) -> None:
        if self.layout.context > 1:
            raise ValueError(f"context is {self.layout.context}, expected 1: layer times are those of whole sequences")
        asked = {name: getattr(self, name) for name in ("precision", "sequence", "microbatch")}
        kinds = {self.shape.has_experts(layer) for layer in range(self.shape.layers)}
        needed = [layer for layer, experts in (("dense_layer", False), ("expert_layer", True)) if experts in kinds]
        asked |= {"model": self.shape.name, "tensor": self.layout.tensor, "expert": self.layout.expert}
        times.check(asked, (*needed, "output_layer"))

    @property
    def compute_source(self) -> str:
        """Where the times come from that layers compute, in words."""
        if self.layer_times is not None:
            return f"layer times of {self.layer_times.file}, measured on {self.layer_times.gpu}"
        return self.gpu.share_in_words(self.precision)

    @property
    def chunks(self) -> int:
        """Parts of the model that a stage holds, where they go through the stages one after the other."""
        return 1 if self.schedule.two_way else self.schedule.chunks

    @property
    def parts(self) -> int:
        """Parts of the model in all: chunk c of stage s is part c * stages + s."""
        return self.layout.pipeline * self.chunks

    def part(self, stage: int, chunk: int) -> int:
        """The part of the model that ``chunk`` of ``stage`` is; of a two-way schedule, on the way up."""
        if self.schedule.two_way:
            return stage
        return chunk * self.layout.pipeline + stage

    def layers(self, part: int) -> range:
        """The layers of ``part``: as many in each, and where that leaves some, one more in those of the middle.

        The first part has the token embedding beside them, the last one the output layer; either may have no layer.
        """
        each, more = divmod(self.shape.layers, self.parts)
        first = (self.parts - more) // 2
        begin = part * each + min(max(0, part - first), more)
        return range(begin, begin + each + (first <= part < first + more))

    @property
    def tokens(self) -> float:
        """Of a microbatch on one rank along the context dimension."""
        return self.microbatch * self.sequence / self.layout.context

    @property
    def batch(self) -> int:
        """Sequences of an iteration, all replicas together."""
        return self.microbatches * self.microbatch * self.layout.data

    @property
    def flops(self) -> float:
        """Of an iteration, all GPUs together, without what is computed again."""
        return self.batch * self.sequence * self.shape.training_flops(self.sequence)

    def dense_parameters(self, part: int) -> float:
        """Parameters of ``part`` that every rank of a tensor group shares, on one rank: all but routed experts."""
        shape = self.shape
        routed = 0 if shape.experts is None else shape.experts.count * shape.expert_weights
        layers = sum(
            shape.layer_parameters(layer) - (routed if shape.has_experts(layer) else 0) for layer in self.layers(part)
        )
        first = shape.embedding if part == 0 else 0
        last = self._output_parameters if part == self.parts - 1 else 0
        return (layers + first + last) / self.layout.tensor

    @property
    def _output_parameters(self) -> int:
        """Of the last part beside its layers: the norm, and the output layer or its copy of the embedding."""
        copied = self.shape.vocabulary * self.shape.hidden if self.shape.tied and self.parts > 1 else 0
        return self.shape.head + copied + self.shape.final_norm

    def expert_parameters(self, part: int) -> float:
        """Parameters of routed experts of ``part`` on one rank."""
        if self.shape.experts is None:
            return 0.0
        layers = sum(self.shape.has_experts(layer) for layer in self.layers(part))
        held = self.shape.experts.count / self.layout.expert
        return layers * held * self.shape.expert_weights / self.layout.tensor

    def stage_parts(self, stage: int) -> tuple[int, ...]:
        """The parts of the model that ``stage`` holds; a two-way schedule keeps each at two stages."""
        if self.schedule.two_way:
            return tuple(sorted({stage, self.layout.pipeline - 1 - stage}))
        return tuple(self.part(stage, chunk) for chunk in range(self.chunks))

    @property
    def state_bytes(self) -> float:
        """Bytes of parameters, gradients and optimizer on the GPU that holds most of them."""
        return max(self._state_bytes(stage) for stage in range(self.layout.pipeline))

    def _state_bytes(self, stage: int) -> float:
        same = self.layout.data * self.layout.context
        parts = self.stage_parts(stage)
        dense = sum(self.dense_parameters(part) for part in parts)
        experts = sum(self.expert_parameters(part) for part in parts)
        return dense * self._per_parameter(same) + experts * self._per_parameter(same // self.layout.expert)

    def _per_parameter(self, ranks: int) -> float:
        """Bytes of a parameter that ``ranks`` hold between them; ``hybrid`` divides as ZeRO-3 does, at most."""
        whole = ("none", "zero-1", "zero-2", "zero-3").index("zero-3" if self.sharding == "hybrid" else self.sharding)
        sizes = (OPTIMIZER_BYTES, GRADIENT_BYTES[self.gradients], PARAMETER_BYTES)
        return sum(size / ranks if place < whole else size for place, size in enumerate(sizes))


def _require_in(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} is '{value}', expected one of: {', '.join(known)}")
