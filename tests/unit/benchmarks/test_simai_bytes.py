"""A SimAI workload's bytes beside those of the same layout here."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.simai_bytes import lines
from workloads.training.gpus import GPUS
from workloads.training.layout import ParallelLayout
from workloads.training.plan import TrainingPlan
from workloads.training.transformer import Transformer

LAYERS, HIDDEN, SEQUENCE = 3, 512, 128
PLAN = TrainingPlan(
    Transformer("small", "", LAYERS, HIDDEN, 8, 8, 64, 2048, 1000, gated=False),
    GPUS["a100"],
    ParallelLayout(8, tensor=4),
    SEQUENCE,
    1,
    gradients="fp32",
)
ACTIVATIONS = 2 * SEQUENCE * HIDDEN
PARAMETERS = (LAYERS * (4 * HIDDEN**2 + 2 * HIDDEN * 2048) + 2 * 1000 * HIDDEN) // 4  # without norms and biases


def written(path: Path, activations: int, parameters: int) -> Path:
    row = "{}\t-1\t5\t{}\t{}\t5\t{}\t{}\t5\t{}\t{}\t100"
    both = ("ALLREDUCE", activations, "ALLREDUCE", activations, "NONE", 0)
    rows = [row.format(f"{name}_layer", *both) for name in ("attention", "mlp") for _ in range(LAYERS)]
    grad = row.format("grad_norm", "ALLGATHER", 2 * parameters, "NONE", 0, "REDUCESCATTER", 4 * parameters)
    loss = row.format("cross_entropy1", "ALLREDUCE", 8192, "NONE", 0, "NONE", 0)
    path.write_text("\n".join(["HYBRID", str(len(rows) + 2), grad, loss, *rows]))
    return path


def test_the_same_bytes_pass(tmp_path: Path) -> None:
    found = lines(written(tmp_path / "a.txt", ACTIVATIONS, PARAMETERS), PLAN)
    assert [(line.columns["what"], line.outcome) for line in found] == [
        ("activations", "pass"), ("gradients", "pass"), ("parameters", "pass"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("activations", "parameters", "wrong"),
    [(ACTIVATIONS + 1, PARAMETERS, ["activations"]), (ACTIVATIONS, PARAMETERS * 11 // 10, ["gradients", "parameters"])],
)
def test_other_bytes_are_missed(tmp_path: Path, activations: int, parameters: int, wrong: list[str]) -> None:
    found = lines(written(tmp_path / "a.txt", activations, parameters), PLAN)
    assert [line.columns["what"] for line in found if line.outcome == "missed"] == wrong
