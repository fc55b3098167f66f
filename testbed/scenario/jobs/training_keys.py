"""Keys of jobs that are large models in training: their parallel layout, and what each GPU computes."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from testbed.scenario.quantities import Count, Flag, Text, expected
from workloads.training.layout import DIMENSIONS, Dimension
from workloads.training.plan import Allreduce, Attention, Recompute, Sharding
from workloads.training.schedules import Schedule

GpuName = Literal["a100", "h100", "h800", "h200", "b200"]
ScheduleName = Literal["1f1b", "gpipe", "interleaved", "zero-bubble", "dualpipe"]


class ParallelSpec(BaseModel):
    """How the ranks of a job divide a model; what is left of its GPUs are replicas."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tensor: Count = Field(1, description="ranks that share every layer")
    pipeline: Count = Field(1, description="stages, each with a part of the layers")
    context: Count = Field(1, description="ranks that share every sequence")
    expert: Count = Field(1, description="ranks that share the experts of a layer")
    order: tuple[Dimension, ...] = Field(DIMENSIONS, description="dimensions of the ranks, neighbours first")


class ScheduleSpec(BaseModel):
    """The schedule of a pipeline."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: ScheduleName = Field("1f1b", description="1f1b, gpipe, interleaved, zero-bubble or dualpipe")
    chunks: Count | None = Field(None, description="parts of the model per stage (interleaved: default 2)")

    def value(self) -> Schedule:
        """Return the schedule; ``ValueError`` if it cannot have so many chunks."""
        chunks = self.chunks
        if chunks is None:
            chunks = 2 if self.name in ("interleaved", "dualpipe") else 1
        return Schedule(self.name, chunks)


def _named(value: object) -> object:
    if isinstance(value, str):
        return {"name": value}
    if not isinstance(value, dict | ScheduleSpec):
        raise expected("a schedule such as 1f1b, or a mapping such as {name: interleaved, chunks: 4}")
    return value


class TrainingKeys(BaseModel):
    """Keys of a job whose model is a large one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parallel: ParallelSpec | None = Field(None, description="how its ranks divide the model")
    microbatches: Count | None = Field(None, description="per replica and iteration (default 8)")
    microbatch: Count | None = Field(None, description="sequences of one (default 1)")
    sequence: Count | None = Field(None, description="tokens of a sequence (default 4096)")
    schedule: Annotated[ScheduleSpec, BeforeValidator(_named, str | ScheduleSpec)] | None = Field(
        None, description="order in which stages work through microbatches (default 1f1b)"
    )
    sharding: Sharding | None = Field(
        None, description="what replicas divide: none, zero-1 (default) to zero-3, hybrid"
    )
    precision: Literal["bf16", "fp8"] | None = Field(None, description="of the layers' multiplications (default bf16)")
    recompute: Recompute | None = Field(None, description="what backward passes compute again (default none)")
    attention: Attention | None = Field(
        None, description="whether scores of attention stay in the chip (default fused)"
    )
    gradient_precision: Literal["bf16", "fp32"] | None = Field(
        None, description="of gradients on the wire (default bf16)"
    )
    allreduce: Allreduce | None = Field(
        None, description="how gradients are added up between hosts: ring, tree, or as NCCL chooses (auto, default)"
    )
    overlap_tensor: Flag | None = Field(
        None, description="whether tensor groups communicate beside compute (default no)"
    )
    accelerator: GpuName | None = Field(None, description="type of its GPUs (default h100)")
    layer_times: Text | None = Field(None, description="a file of measured layer times, instead of published shares")


KEYS: Final = tuple(TrainingKeys.model_fields)
