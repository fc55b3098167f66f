"""Which model of the catalogue a job of a trace trains: an assumption, published with every run.

No public trace records what its jobs compute and send. Names that a source gives are mapped by
:data:`SOURCE_NAMES`; all other jobs draw from :data:`BY_GPUS`, by how many GPUs they have. The
families are those that Crux names for its trace (section 6.1: BERT, GPT, ResNet, NMT,
Multi-Interests, a click model); the paper does not say which job trained what.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from workloads.traces.trace import Trace, TraceJob

SOURCE_NAMES: Final = (
    ("gpt", "crux-gpt"),
    ("llama", "crux-gpt"),
    ("65b", "crux-gpt"),
    ("30b", "crux-gpt"),
    ("pretrain", "crux-gpt"),
    ("bert", "crux-bert"),
    ("resnet", "crux-resnet"),
    ("vgg", "vgg"),
    ("inception", "crux-resnet"),
    ("nmt", "nmt"),
    ("transformer", "nmt"),
    ("moe", "moe"),
    ("ctr", "ctr"),
    ("dlrm", "ctr"),
    ("graphlearn", "multi-interests"),
    ("embedding", "multi-interests"),
    ("interest", "multi-interests"),
)
"""(part of the name in the source, in upper or lower case; model of the catalogue); the first that fits counts.

An assumption: language models of every size run as the one GPT whose iteration Crux measured, and
the three models with a ``crux-`` profile use it.
"""

BY_GPUS: Final[tuple[tuple[int, Mapping[str, int]], ...]] = (
    (8, {"crux-resnet": 30, "crux-bert": 30, "nmt": 15, "multi-interests": 15, "ctr": 10}),
    (64, {"crux-bert": 35, "crux-gpt": 20, "crux-resnet": 20, "nmt": 10, "ctr": 10, "multi-interests": 5}),
    (1_000_000, {"crux-gpt": 80, "crux-bert": 20}),
)
"""(at most so many GPUs, model -> weight): assumed, larger jobs are more often language models."""


def assign_models(trace: Trace, seed: int) -> Mapping[str, str]:
    """Return job name -> model of :data:`workloads.models.catalogue.CATALOGUE`.

    A draw depends on the seed and the job's name alone: a window of a trace keeps the models of the whole.
    """
    return {job.name: known_model(job.model) or _drawn(job, seed) for job in trace.jobs}


def known_model(source_name: str) -> str:
    """Return the model that a name in a source maps to, empty if it is none of :data:`SOURCE_NAMES`."""
    lowered = source_name.lower()
    return next((model for part, model in SOURCE_NAMES if part in lowered), "")


def _drawn(job: TraceJob, seed: int) -> str:
    weights = next(weights for most, weights in BY_GPUS if job.gpus <= most or most == BY_GPUS[-1][0])
    return random.Random(f"{seed}:{job.name}").choices(list(weights), list(weights.values()))[0]
