"""Measuring layers: without PyTorch or a GPU it is skipped, and what it writes is read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import gpu_layers
from workloads.training.layer_times import read_layer_times


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
