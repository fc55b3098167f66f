"""Serving plans: caches and steps by hand, and what does not fit is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workloads.serving.plan import Pool, ServingPlan
from workloads.serving.requests import PoissonArrivals
from workloads.training.gpus import GPUS
from workloads.training.shape_files import shapes

LLAMA = ServingPlan(
    shapes()["llama3-70b"], GPUS["h100"], Pool(2, 8), Pool(3, 8), PoissonArrivals(1.0, 2048, 64, 100), "bf16"
)


def test_a_token_of_llama_70b_has_327_680_bytes_of_keys_and_values() -> None:
    """80 layers, 8 heads of 128, keys and values, 2 bytes."""
    assert LLAMA.cache_bytes == 2 * 80 * 8 * 128 * 2 == 327_680


def test_latent_attention_keeps_576_numbers_a_layer() -> None:
    """DeepSeek-V2, section 2.1: a latent vector of 512 and a rotary key of 64."""
    deepseek = replace(LLAMA, shape=shapes()["deepseek-v3"], prefill=Pool(1, 32), decode=Pool(1, 32))
    assert deepseek.cache_bytes == 61 * 576 * 2


def test_a_prefill_takes_its_flops_at_the_share_of_peak_that_training_reaches() -> None:
    alone = replace(LLAMA, gpu=GPUS["h200"], prefill=Pool(1, 2), decode=Pool(1, 2))
    shape = alone.shape
    flops = 2048 * sum(shape.layer_flops(layer, 2048) for layer in range(80)) + shape.head_flops
    sums = 2 * 80 * 2048 * 8192 * 2  # bytes, of which a ring of two sends each rank's half twice
    expected = flops / 2 / (0.4644 * 989.4e12) + 8 * sums / (0.8 * 3.6e12)
    assert alone.prefill_s(2048) == pytest.approx(expected)


def test_a_decode_step_reads_all_weights_once() -> None:
    model = LLAMA.decode_model()
    assert model.weights_s == pytest.approx(2 * LLAMA.shape.parameters / 8 / (0.9 * 3.35e12))
    assert model.experts_s == 0.0
    assert model.most_tokens == int((0.9 * 80e9 * 8 - 2 * LLAMA.shape.parameters) / 327_680)


def test_a_mixture_reads_the_experts_that_tokens_need() -> None:
    mixtral = replace(LLAMA, shape=shapes()["mixtral-8x7b"]).decode_model()
    assert mixtral.expert_share == 2 / 8
    assert mixtral.experts_s > 4 * mixtral.weights_s


def test_a_round_reaches_every_instance_of_both_pools_equally() -> None:
    assert LLAMA.slots == 6
    assert LLAMA.gpus == 40
    assert LLAMA.decode.places(2, LLAMA.prefill.gpus) == tuple(range(32, 40))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prefill": Pool(1, 3)}, "prefill.tensor is 3, expected a divisor of 64 heads"),
        ({"decode": Pool(1, 1)}, "decode: weights take 141 GB of a GPU, expected at most 72 GB of H100 SXM"),
        ({"gpu": GPUS["a100"], "precision": "fp8"}, "precision is 'fp8', which A100 SXM 80 GB does not have"),
        ({"shape": shapes()["dit-xl"]}, "expected one that makes tokens"),
        ({"prefill": Pool(97, 8), "decode": Pool(89, 8)}, "repeat after 8633 requests, expected at most 4096"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match="expected") as raised:
        replace(LLAMA, **changes)  # type: ignore[arg-type]
    assert message in str(raised.value)
