"""Parallel layouts: which ranks share tensors, sequences, experts, gradients and pipelines.

Ranks are numbered as Megatron-LM numbers them (``--use-tp-pp-dp-mapping`` off): neighbours share tensors, then come
context, data and pipeline; or in an order given. Experts divide the context and data dimensions together, neighbours
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, get_args

Dimension = Literal["tensor", "context", "data", "pipeline"]
Group = Literal["tensor", "context", "data", "pipeline", "gradient", "expert", "expert-gradient", "stage"]
DIMENSIONS: Final[tuple[Dimension, ...]] = get_args(Dimension)

_ALONG: Final[dict[Group, tuple[Dimension, ...]]] = {
    "tensor": ("tensor",),
    "context": ("context",),
    "data": ("data",),
    "pipeline": ("pipeline",),
    "gradient": ("context", "data"),
    "stage": ("tensor", "context", "data"),
}


@dataclass(frozen=True, slots=True)
class ParallelLayout:
    """``gpus`` = tensor x context x data x pipeline; ``expert`` divides context x data. ``order``: fastest first."""

    gpus: int
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    order: tuple[Dimension, ...] = DIMENSIONS

    def __post_init__(self) -> None:
        for name in ("gpus", "tensor", "pipeline", "context", "expert"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least 1")
        replica = self.tensor * self.pipeline * self.context
        if self.gpus % replica:
            parts = f"tensor {self.tensor} x pipeline {self.pipeline} x context {self.context}"
            raise ValueError(f"{self.gpus} GPUs with {parts}, expected a multiple of {replica} GPUs")
        if self.data * self.context % self.expert:
            what = f"expert {self.expert} with data {self.data} x context {self.context}"
            raise ValueError(f"{what}, expected a divisor of {self.data * self.context}")
        if sorted(self.order) != sorted(DIMENSIONS):
            raise ValueError(f"order is {', '.join(self.order)}, expected each of {', '.join(DIMENSIONS)} once")

    @property
    def data(self) -> int:
        """Replicas of the model."""
        return self.gpus // (self.tensor * self.pipeline * self.context)

    def size(self, dimension: Dimension) -> int:
        """Ranks along ``dimension``."""
        return int(getattr(self, dimension))

    def place(self, rank: int) -> dict[Dimension, int]:
        """Where ``rank`` is along each dimension."""
        found: dict[Dimension, int] = {}
        for dimension in self.order:
            rank, found[dimension] = divmod(rank, self.size(dimension))
        return found

    def stage(self, rank: int) -> int:
        """The pipeline stage of ``rank``."""
        return self.place(rank)["pipeline"]

    def stages(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each pipeline stage, in order."""
        return self.groups("stage")

    def groups(self, group: Group) -> tuple[tuple[int, ...], ...]:
        """Every group of a kind as its ranks, in order of the ranks; groups of one rank included.

        ``gradient``: ranks that hold the same dense weights; ``expert``: those that share the experts of a layer
        between them; ``expert-gradient``: those that hold the same experts; ``stage``: all of a pipeline stage.
        """
        if group == "expert":
            shares = self.expert
            parts = ([each[i : i + shares] for i in range(0, len(each), shares)] for each in self.groups("gradient"))
        elif group == "expert-gradient":
            parts = ([each[i :: self.expert] for i in range(self.expert)] for each in self.groups("gradient"))
        else:
            return self._along(_ALONG[group])
        return tuple(part for found in parts for part in found)

    def _along(self, dimensions: Sequence[Dimension]) -> tuple[tuple[int, ...], ...]:
        """Ranks that differ along ``dimensions`` only, for every place along the others."""
        strides: dict[Dimension, int] = {}
        stride = 1
        for dimension in self.order:
            strides[dimension] = stride
            stride *= self.size(dimension)
        inner = [each for each in self.order if each in dimensions]
        outer = [each for each in self.order if each not in dimensions]
        return tuple(
            tuple(start + offset for offset in self._offsets(inner, strides)) for start in self._offsets(outer, strides)
        )

    def _offsets(self, dimensions: Sequence[Dimension], strides: dict[Dimension, int]) -> list[int]:
        ranges = [range(self.size(each)) for each in reversed(dimensions)]
        steps = [strides[each] for each in reversed(dimensions)]
        return [sum(place * step for place, step in zip(places, steps, strict=True)) for places in product(*ranges)]
