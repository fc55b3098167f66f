"""Parameters and FLOPs of models counted from their published dimensions equal what their authors publish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workloads.imported.errors import WorkloadFileError
from workloads.training.shape_files import read_config, shapes
from workloads.training.transformer import Transformer

SAFETENSORS = {
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
    "mixtral-8x7b": 46_702_792_704,
    "qwen3-32b": 32_762_123_264,
    "qwen3-235b": 235_093_634_560,
}
"""Parameters in the weight files of the releases."""
IN_PAPERS = {
    "gpt3-175b": (175e9, 0.01),
    "deepseek-v3": (671e9, 0.001),
    "dit-xl": (675e6, 0.01),
    "vit-22b": (21.743e9, 0.001),
}
"""Parameters as papers round them, and how far off that may be."""


@pytest.mark.parametrize("name", SAFETENSORS)
def test_parameters_are_those_of_the_weight_files(name: str) -> None:
    assert shapes()[name].parameters == SAFETENSORS[name]


@pytest.mark.parametrize("name", IN_PAPERS)
def test_parameters_are_those_of_the_paper(name: str) -> None:
    published, tolerance = IN_PAPERS[name]
    assert shapes()[name].parameters == pytest.approx(published, rel=tolerance)


@pytest.mark.parametrize(("name", "active"), [("mixtral-8x7b", 12.9e9), ("qwen3-235b", 22e9), ("deepseek-v3", 37e9)])
def test_tokens_pass_as_many_parameters_as_published(name: str, active: float) -> None:
    assert shapes()[name].active_parameters == pytest.approx(active, rel=0.02)


def test_every_number_of_every_model_names_its_source() -> None:
    assert all(shape.sources for shape in shapes().values())


def test_flops_are_those_of_megatrons_formula() -> None:
    """96 B s l h^2 (1 + s / 6h + V / 16lh) with recomputation (SC'21, section 3): four forward passes."""
    layers, hidden, length, vocabulary = 24, 2304, 2048, 51200
    shape = Transformer(
        "g", "", layers, hidden, 24, 24, 96, 4 * hidden, vocabulary, gated=False, tied=True, biases=True
    )
    formula = 96 * layers * hidden**2 * (1 + length / (6 * hidden) + vocabulary / (16 * layers * hidden))
    with_recomputation = 4 * (shape.forward_flops(length) - shape.head_flops) + 3 * shape.head_flops
    assert with_recomputation == pytest.approx(formula, rel=1e-12)


CONFIGS = {
    "llama3-8b": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
    },
    "mixtral-8x7b": {
        "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
    "deepseek-v3": {
        "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_attention_heads": 128,
        "num_hidden_layers": 61, "num_key_value_heads": 128, "vocab_size": 129280, "n_routed_experts": 256,
        "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "first_k_dense_replace": 3,
        "topk_group": 4, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
        "v_head_dim": 128,
    },
    "qwen3-235b": {
        "model_type": "qwen3_moe", "hidden_size": 4096, "intermediate_size": 12288, "num_attention_heads": 64,
        "num_hidden_layers": 94, "num_key_value_heads": 4, "vocab_size": 151936, "head_dim": 128, "num_experts": 128,
        "num_experts_per_tok": 8, "moe_intermediate_size": 1536, "tie_word_embeddings": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_of_hugging_face_is_the_same_model(name: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS[name]))
    known, read = shapes()[name], read_config(path)
    assert read.parameters == known.parameters
    assert read.active_parameters == known.active_parameters
    assert read.forward_flops(4096) == known.forward_flops(4096)


def test_gpt2_has_the_keys_of_its_time(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps(
            {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
        )
    )
    assert read_config(path).parameters == 124_439_808


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON, expected a config.json of Hugging Face"),
        ("[]", "not a JSON object, expected a config.json of Hugging Face"),
        ("{}", "no num_hidden_layers, expected the model's layers"),
        (json.dumps({**CONFIGS["llama3-8b"], "vocab_size": "many"}), 'vocab_size is "many", expected a whole number'),
        (
            json.dumps({**CONFIGS["llama3-8b"], "num_hidden_layers": 10**9}),
            "layers is 1000000000, expected 1 to 10000000",
        ),
        (json.dumps({**CONFIGS["llama3-8b"], "num_hidden_layers": 10**5}), "layers is 100000, expected at most 10000"),
        (
            json.dumps({**CONFIGS["llama3-8b"], "num_key_value_heads": 5}),
            "key_value_heads is 5, expected a divisor of 32 heads",
        ),
    ],
)
def test_what_is_wrong_in_a_config_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(WorkloadFileError) as caught:
        read_config(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
