"""A serving job: a model, its pools of instances and its requests; how long prefill and decode steps take.

Prefill is bound by FLOPs, at the share of peak that training reaches. A decode step reads the weights and every cached
key and value once, at 0.9 of the memory's rate (FlashMLA, README: 3,000 of 3,350 GB/s on an H800), or computes, if that
takes longer. Sums of a tensor group take as long as in training. Weights are bf16 or fp8, caches bf16.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Final

from workloads.serving.requests import Arrivals
from workloads.serving.served import DecodeModel, Request
from workloads.training.gpus import PRECISIONS, Gpu
from workloads.training.plan import ACTIVATION_BYTES
from workloads.training.transformer import Transformer
from workloads.training.work import SUMS_PER_LAYER

MEMORY_RATE_SHARE: Final = 0.9
MEMORY_SHARE: Final = 0.9
"""Of a GPU's memory that weights and caches may take: vLLM's default."""
MOST_SLOTS: Final = 4096
"""Requests until both pools are at their first instance again."""


@dataclass(frozen=True, slots=True)
class Pool:
    """``instances`` of a model, each on ``tensor`` GPUs."""

    instances: int = 1
    tensor: int = 1

    @property
    def gpus(self) -> int:
        """Of all instances."""
        return self.instances * self.tensor

    def places(self, instance: int, first: int = 0) -> tuple[int, ...]:
        """Places of the GPUs of ``instance`` where those of the pool begin at ``first``."""
        return tuple(range(first + instance * self.tensor, first + (instance + 1) * self.tensor))


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """Requests go to the instances of each pool in turn; a decode instance has at most ``batch`` at once.

    Raises ``ValueError`` naming what does not fit.
    """

    shape: Transformer
    gpu: Gpu
    prefill: Pool
    decode: Pool
    arrivals: Arrivals
    precision: str = "bf16"
    batch: int = 256

    def __post_init__(self) -> None:
        self.gpu.peak(self.precision)
        if self.shape.vocabulary == 0:
            raise ValueError(f"model is {self.shape.title}, expected one that makes tokens")
        for name in ("prefill", "decode"):
            tensor = getattr(self, name).tensor
            if self.shape.heads % tensor:
                raise ValueError(f"{name}.tensor is {tensor}, expected a divisor of {self.shape.heads} heads")
            if (kept := self.weight_bytes / tensor) > MEMORY_SHARE * self.gpu.memory:
                most = f"at most {MEMORY_SHARE * self.gpu.memory / 1e9:.0f} GB of {self.gpu.title}"
                raise ValueError(f"{name}: weights take {kept / 1e9:.0f} GB of a GPU, expected {most}")
        if self.slots > MOST_SLOTS:
            pools = f"{self.prefill.instances} prefill and {self.decode.instances} decode instances"
            raise ValueError(f"{pools} repeat after {self.slots} requests, expected at most {MOST_SLOTS}")

    @property
    def compute_source(self) -> str:
        """Where the times of prefills come from, in words."""
        return self.gpu.share_in_words(self.precision)

    @property
    def slots(self) -> int:
        """Requests of an iteration: as many go to each instance of a pool."""
        return lcm(self.prefill.instances, self.decode.instances)

    @property
    def gpus(self) -> int:
        """Of both pools."""
        return self.prefill.gpus + self.decode.gpus

    @property
    def weight_bytes(self) -> float:
        """Of the whole model."""
        return self.shape.parameters * PRECISIONS[self.precision]

    @property
    def cache_bytes(self) -> float:
        """Keys and values of a token, all layers."""
        return self.shape.layers * self.shape.key_value_width * ACTIVATION_BYTES

    def prefill_flops(self, prompt: int) -> float:
        """Of a prompt; the output layer sees its last token alone."""
        shape = self.shape
        layers = sum(shape.layer_flops(layer, prompt) for layer in range(shape.layers))
        return prompt * layers + shape.head_flops

    def prefill_s(self, prompt: int) -> float:
        """Seconds from the begin of a prefill to its first token, without sums between hosts."""
        flops = self.prefill_flops(prompt) / self.prefill.tensor
        return flops / self.gpu.achieved(self.precision) + prompt * self._sums_s(self.prefill.tensor)

    def sum_bytes(self, prompt: float) -> float:
        """What a rank of a prefill instance hands in for the sums of all layers together."""
        return SUMS_PER_LAYER * self.shape.layers * prompt * self.shape.hidden * ACTIVATION_BYTES

    def _sums_s(self, tensor: int) -> float:
        """Seconds that the sums of all layers take for a token."""
        return self.gpu.ring_s(tensor, self.sum_bytes(1))

    def request_flops(self, request: Request) -> float:
        """Of a request from prompt to last token."""
        whole = self.shape.forward_flops(request.prompt + request.output / 2)
        return self.prefill_flops(request.prompt) + (request.output - 1) * whole

    def decode_model(self) -> DecodeModel:
        """How long the steps of a decode instance take, and how much fits into it."""
        shape, tensor, rate = self.shape, self.decode.tensor, MEMORY_RATE_SHARE * self.gpu.memory_rate
        routed = shape.parameters - shape.dense_parameters
        free = MEMORY_SHARE * self.gpu.memory * tensor - self.weight_bytes
        read = PRECISIONS[self.precision] / tensor / rate
        experts = shape.experts
        return DecodeModel(
            batch=self.batch,
            most_tokens=int(free / self.cache_bytes),
            weights_s=shape.dense_parameters * read,
            experts_s=routed * read,
            expert_share=0.0 if experts is None else experts.per_token / experts.count,
            token_s=self.cache_bytes / tensor / rate,
            compute_s=shape.forward_flops(0) / tensor / self.gpu.achieved(self.precision),
            sums_s=self._sums_s(tensor),
        )
