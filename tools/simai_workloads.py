"""Writes the workloads of ``multi-tenant.yaml`` in SimAI's format, from the dimensions of the models.

Compute is that of an A100 at the rate of the catalogue's transformers. Rows are those of Megatron (tensor parallelism
with a distributed optimiser) and of ZeRO-3, as AICB lists them.

    python -m tools.simai_workloads testbed/scenarios/workloads
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workloads.models.catalogue import TRANSFORMER_FLOPS

UPDATE_NS: Final = 100


@dataclass(frozen=True, slots=True)
class Decoder:
    """A transformer decoder, and what one iteration of a replica takes in."""

    layers: int
    hidden: int
    mlp_parameters: int
    """Of one layer."""
    vocabulary: int
    sequence: int
    sequences: int
    """Per replica and iteration."""

    @property
    def tokens(self) -> int:
        """Tokens of an iteration."""
        return self.sequence * self.sequences

    @property
    def attention_parameters(self) -> int:
        """Of one layer: query, key, value and output."""
        return 4 * self.hidden**2

    @property
    def parameters(self) -> int:
        """Of the model."""
        return self.layers * (self.attention_parameters + self.mlp_parameters) + self.vocabulary * self.hidden

    def attention_flops(self) -> float:
        """Forward, of one layer: two per parameter and token, and the scores."""
        return 2.0 * self.tokens * self.attention_parameters + 4.0 * self.tokens * self.sequence * self.hidden

    def mlp_flops(self) -> float:
        """Forward, of one layer."""
        return 2.0 * self.tokens * self.mlp_parameters


GPT_13B: Final = Decoder(40, 5120, 8 * 5120**2, 50257, 2048, 4)
"""Brown et al., GPT-3 (NeurIPS 2020), table 2.1."""
LLAMA_7B: Final = Decoder(32, 4096, 3 * 4096 * 11008, 32000, 2048, 4)
"""Touvron et al., LLaMA (2023), table 2."""
LLAMA_7B_ZERO3: Final = Decoder(32, 4096, 3 * 4096 * 11008, 32000, 2048, 2)


def row(name: str, *columns: tuple[float, str, float]) -> str:
    """A row: (compute in s, collective, bytes) of forward pass, input gradient and weight gradient."""
    words = [name, "-1"]
    for seconds, collective, size in columns:
        words += [str(round(seconds * 1e9)), collective, str(round(size))]
    return "\t".join([*words, str(UPDATE_NS)])


NOTHING: Final = (0.0, "NONE", 0.0)


def megatron(model: Decoder, tensor: int) -> Iterator[str]:
    """Rows with tensor parallelism: an allreduce after attention and MLP each; gradients are scattered at the end."""
    part = model.parameters / tensor
    activations = 2.0 * model.tokens * model.hidden
    yield row("parameters_gather", NOTHING, NOTHING, (0.0, "ALLGATHER", 2 * part))
    yield row("gradients_scatter", NOTHING, NOTHING, (0.0, "REDUCESCATTER", 4 * part))
    for _ in range(model.layers):
        for name, flops in (("attention", model.attention_flops()), ("mlp", model.mlp_flops())):
            seconds = flops / tensor / TRANSFORMER_FLOPS
            share = (seconds, "ALLREDUCE", activations)
            yield row(name, share, share, (seconds, "NONE", 0.0))


def zero3(model: Decoder) -> Iterator[str]:
    """Rows of ZeRO-3: every layer gathers its parameters before each pass and scatters its gradients."""
    for _ in range(model.layers):
        parameters = model.attention_parameters + model.mlp_parameters
        seconds = (model.attention_flops() + model.mlp_flops()) / TRANSFORMER_FLOPS
        gather = (seconds, "ALLGATHER", 2.0 * parameters)
        yield row("layer", gather, gather, (seconds, "REDUCESCATTER", 2.0 * parameters))


def workload(rows: Iterator[str], tensor: int) -> str:
    """The file."""
    lines = list(rows)
    header = (
        f"HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: {tensor} checkpoints: 0 checkpoint_initiates: 0"
    )
    return "\n".join([header, str(len(lines)), *lines]) + "\n"


def files() -> dict[str, str]:
    """Name -> content."""
    return {
        "gpt-13b-tensor8.txt": workload(megatron(GPT_13B, 8), 8),
        "llama-7b-tensor2.txt": workload(megatron(LLAMA_7B, 2), 2),
        "llama-7b-zero3.txt": workload(zero3(LLAMA_7B_ZERO3), 1),
    }


def main() -> int:
    """Write them into the folder that is named."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
