"""Measuring layers: without PyTorch or a GPU it is skipped, and what it writes is read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import gpu_layers
from workloads.training.gpus import GPUS
from workloads.training.layer_times import read_layer_times
from workloads.training.layout import ParallelLayout
from workloads.training.plan import TrainingPlan
from workloads.training.transformer import Experts, LatentAttention, Transformer


def test_without_pytorch_it_is_skipped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(sys, "argv", ["gpu_layers"])
    assert gpu_layers.main() == 0
    assert "skipped: no PyTorch" in capsys.readouterr().err


def test_what_it_writes_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    config = tmp_path / "small.json"
    config.write_text(
        json.dumps(
            {"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
             "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100, "num_local_experts": 4,
             "num_experts_per_tok": 2}
        )
    )  # fmt: skip
    out = tmp_path / "times.json"
    arguments = ["--model", str(config), "--sequence", "32", "--device", "cpu", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["gpu_layers", *arguments])
    assert gpu_layers.main() == 0
    assert set(read_layer_times(out).layers) == {"expert_layer", "output_layer"}


DENSE = Transformer("dense", "", 2, 64, 4, 2, 16, 128, 100)
MIXTURE = Transformer("mixture", "", 2, 64, 4, 4, 16, 128, 100, experts=Experts(4, 2, 32, shared=1))
LATENT = Transformer("latent", "", 2, 64, 4, 4, 16, 128, 100, latent=LatentAttention(24, 16, 8, 16, 16))


@pytest.mark.parametrize("shape", [DENSE, MIXTURE, LATENT], ids=lambda shape: shape.name)
def test_what_is_measured_has_the_operations_of_the_model(shape: Transformer) -> None:
    """PyTorch's own count of the FLOPs of a forward pass; of attention that is not fused, for it counts no other."""
    torch = pytest.importorskip("torch")
    counter = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode
    attention = pytest.importorskip("torch.nn.attention")
    plan = TrainingPlan(shape, GPUS["h100"], ParallelLayout(1), 32, 1)
    layers = gpu_layers.Layers(torch, "cpu", plan)
    given = layers.values(1, 32, shape.hidden)
    for layer, flops in (
        (layers.transformer(experts=shape.has_experts(0)), shape.layer_flops(0, 32)),
        (layers.output(), shape.head_flops),
    ):
        with attention.sdpa_kernel(attention.SDPBackend.MATH), counter(display=False) as counted:
            layer(given)
        assert counted.get_total_flops() == pytest.approx(32 * flops, rel=0.01)
