"""Models have the parameters and FLOPs their papers publish, and the catalogue is complete."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workloads.communication.collectives import COLLECTIVES
from workloads.models import convnets
from workloads.models.catalogue import CATALOGUE
from workloads.models.model import A100_PEAK
from workloads.models.recommenders import CRITEO_ROWS
from workloads.models.transformers import Transformer

PUBLISHED_PARAMETERS = {
    "gpt": 0.354e9,
    "gpt2-xl": 1.558e9,
    "gpt-6.7b": 6.7e9,
    "bert": 340e6,
    "bert-base": 110e6,
    "resnet": 25.557e6,
    "resnet152": 60.193e6,
    "vgg": 138.358e6,
    "vgg19": 143.667e6,
    "nmt": 213e6,
    "nmt-base": 65e6,
    "moe": 7.41e9,
    "ctr": 24.0e9,
}


@pytest.mark.parametrize(("name", "published"), PUBLISHED_PARAMETERS.items())
def test_parameters_are_those_published(name: str, published: float) -> None:
    assert CATALOGUE[name].parameters == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize(
    ("layers", "multiply_adds"),
    [
        (convnets.resnet((3, 4, 6, 3)), 4.09e9),
        (convnets.resnet((3, 8, 36, 3)), 11.51e9),
        (convnets.vgg((2, 2, 3, 3, 3)), 15.47e9),
        (convnets.vgg((2, 2, 4, 4, 4)), 19.63e9),
    ],
)
def test_convnets_cost_the_published_multiply_adds(layers: tuple[convnets.Layer, ...], multiply_adds: float) -> None:
    assert convnets.forward_flops(layers) / 2 == pytest.approx(multiply_adds, rel=0.005)


def test_transformer_flops_agree_with_the_closed_formula_of_narayanan() -> None:
    layers, hidden, length, vocabulary, batch = 24, 1024, 2048, 50257, 16
    counted = 3 * Transformer(layers, hidden, vocabulary, length).forward_flops(batch, length)
    closed = (
        72 * batch * length * layers * hidden**2 * (1 + length / (6 * hidden) + vocabulary / (12 * layers * hidden))
    )
    assert counted == pytest.approx(closed, rel=1e-9)


def test_large_transformers_cost_six_flops_per_parameter_and_token() -> None:
    shape = Transformer(32, 4096, 50257, 2048)
    assert 3 * shape.forward_flops(1, 2048) / 2048 == pytest.approx(6 * shape.parameters, rel=0.1)


def test_criteo_has_the_26_tables_of_mlperf() -> None:
    assert (len(CRITEO_ROWS), sum(CRITEO_ROWS)) == (26, 187_767_399)


def test_the_catalogue_holds_at_least_eleven_derived_models() -> None:
    derived = [name for name in CATALOGUE if not name.startswith("crux-")]
    assert len(derived) >= 11
    assert {"gpt", "bert", "resnet", "nmt", "multi-interests", "ctr", "moe", "vgg"} <= set(derived)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_model_says_where_it_comes_from_and_can_run_on_an_a100(name: str) -> None:
    model = CATALOGUE[name]
    assert model.name == name
    assert model.sources and model.layout
    assert 0 < model.achieved_flops < A100_PEAK
    assert 0 < model.compute_s < 5
    assert all(phase.collective in COLLECTIVES and phase.bytes > 0 for phase in model.phases)


def test_dense_models_exchange_two_bytes_per_parameter() -> None:
    for name in ("gpt", "bert", "resnet", "vgg", "nmt", "gpt-6.7b"):
        assert CATALOGUE[name].gradient_bytes == 2 * CATALOGUE[name].parameters


def test_tensor_parallel_gpus_share_the_work_of_a_replica_but_not_its_gradient() -> None:
    whole = 3 * Transformer(32, 4096, 50257, 2048).forward_flops(8, 2048)
    assert CATALOGUE["gpt-6.7b"].flops_per_gpu == pytest.approx(whole / 8)
    assert CATALOGUE["gpt-6.7b"].gradient_bytes > 13e9


def test_the_mixture_of_experts_alternates_all_to_all_and_compute_and_ends_with_an_allreduce() -> None:
    moe = CATALOGUE["moe"]
    assert [phase.collective for phase in moe.phases] == ["alltoall"] * 4 + ["hierarchical"]
    assert moe.gradient_bytes < 0.05 * 2 * moe.parameters


def test_the_mixture_of_experts_hands_its_tokens_to_four_all_to_alls_per_expert_layer() -> None:
    tokens, hidden, layers, capacity = 16 * 512, 768, 12, 1.25
    sent = sum(phase.bytes for phase in CATALOGUE["moe"].phases if phase.collective == "alltoall")
    assert sent == pytest.approx(4 * layers * tokens * hidden * capacity * 2)


def test_phases_that_miss_part_of_the_compute_are_refused() -> None:
    gpt = CATALOGUE["gpt"]
    with pytest.raises(ValueError, match=r"0\.5 of the compute"):
        replace(gpt, phases=(replace(gpt.phases[0], share=0.5),))
