"""The ``model`` of a job as the file of another tool."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from testbed.scenario.quantities import Size, Text
from topologies import limits
from workloads.imported.expansion import PHASES
from workloads.imported.files import ALGORITHM, FORMS, SCHEDULE, SHAPE
from workloads.imported.workload import GroupKind

KEYS = (*FORMS, SCHEDULE, ALGORITHM, SHAPE)
"""What a model may name: an iteration in one of the forms, a schedule, or the shape of a transformer."""


class ModelFileSpec(BaseModel):
    """A job's iteration, or the shape of its model, from a file of another tool; see :mod:`workloads.imported`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    simai: Text | None = Field(None, description="file of a SimAI workload, relative to the scenario")
    chakra: Text | None = Field(None, description="folder of Chakra execution traces, relative to the scenario")
    kineto: Text | None = Field(None, description="trace of the PyTorch profiler, relative to the scenario")
    goal: Text | None = Field(None, description="GOAL schedule, a host per rank, relative to the scenario")
    msccl: Text | None = Field(None, description="algorithm of MSCCL, a host per GPU of it, relative to the scenario")
    size: Size | None = Field(None, description="bytes per GPU of that algorithm's collective")
    config: Text | None = Field(None, description="config.json of a model on Hugging Face, relative to the scenario")
    group: GroupKind | None = Field(None, description="ranks that take part in collectives that say none")
    phases: Annotated[int, Field(strict=True, ge=1, le=limits.WORKLOAD_PHASES)] = Field(
        PHASES, description="most phases of an iteration, roughly: neighbours become one"
    )

    @model_validator(mode="after")
    def _one_file(self) -> Self:
        if len(self.files) != 1:
            raise ValueError(f"model has {len(self.files)} files, expected one of {', '.join(KEYS)}")
        given = self.model_fields_set & {"group", "phases"}
        if given and (self.goal or self.msccl):
            raise ValueError(f"model has {min(given)}, expected none: a schedule has every operation")
        if (self.size is None) != (self.msccl is None):
            has, lacks = ("size", "msccl") if self.msccl is None else ("msccl", "size")
            raise ValueError(f"model has {has} and no {lacks}, expected both: an algorithm, and bytes per GPU")
        return self

    @property
    def files(self) -> dict[str, str]:
        """Format -> file."""
        return {form: file for form in KEYS if (file := getattr(self, form)) is not None}
