"""Keys of jobs that answer requests: their pools of instances, and the requests."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from testbed.scenario.jobs.training_keys import TrainingKeys
from testbed.scenario.quantities import Count, Factor, Text
from workloads.serving.requests import MOST_REQUESTS, MOST_TOKENS

Tokens = Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)]
JobKind = Literal["training", "serving", "external"]


class PoolSpec(BaseModel):
    """A pool of instances, each a whole model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    instances: Count = Field(1, description="instances of the model")
    tensor: Count = Field(1, description="GPUs of an instance, which share every layer")


class RequestsSpec(BaseModel):
    """Requests by a Poisson process, or from a trace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rate: Factor | None = Field(None, description="requests per second on average, at random times")
    prompt: Tokens | None = Field(None, description="tokens of a prompt")
    output: Tokens | None = Field(None, description="tokens of an answer (default 128)")
    count: Annotated[int, Field(strict=True, ge=1, le=MOST_REQUESTS)] = Field(1000, description="requests at most")
    trace: Text | None = Field(
        None, description="file of requests, relative to the scenario: CSV of Azure, or JSON lines of Mooncake"
    )

    @model_validator(mode="after")
    def _drawn_or_recorded(self) -> Self:
        if self.trace is None and (self.rate is None or self.prompt is None):
            raise ValueError("requests has no rate or no prompt, expected both, or a trace")
        if self.trace is not None and any(each is not None for each in (self.rate, self.prompt, self.output)):
            raise ValueError("requests has a trace and rate, prompt or output, expected one or the other")
        return self


class ServingKeys(TrainingKeys):
    """Keys of a job that serves a model."""

    prefill: PoolSpec | None = Field(None, description="instances of a serving job that read prompts")
    decode: PoolSpec | None = Field(None, description="instances of a serving job that write answers")
    requests: RequestsSpec | None = Field(None, description="what a serving job is asked")
    batch: Count | None = Field(None, description="requests at a decode instance at once, at most (default 256)")


KEYS: Final = ("prefill", "decode", "requests", "batch")
