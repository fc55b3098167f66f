"""The catalogue: every model a scenario may name, derived from its published architecture.

Parameters, FLOPs and bytes are computed here from dimensions, batch size and layout; nothing is
typed in. What is an assumption is stated as one: the FLOP/s an A100 achieves per family, the batch
sizes and the overlap. Gradients are exchanged in 2 bytes (mixed precision).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from workloads.models import convnets
from workloads.models.calibration import CALIBRATED, calibrate
from workloads.models.model import A100_PEAK, Model, PhaseTemplate
from workloads.models.recommenders import CRITEO_ROWS, ClickModel, InterestModel
from workloads.models.transformers import BACKWARD_AND_FORWARD, SwitchTransformer, Transformer, Translator

TRANSFORMER_FLOPS: Final = 0.44 * A100_PEAK
"""137 TFLOP/s: what Narayanan et al. (SC'21, table 1) report for their smallest model on A100."""
CONVNET_FLOPS: Final = 0.20 * A100_PEAK
"""Assumed: 62 TFLOP/s, about 2,500 images/s of ResNet-50 in mixed precision."""
EXPERT_FLOPS: Final = 0.25 * A100_PEAK
"""Assumed: routing and small expert batches cost almost half of a dense transformer's rate."""
EMBEDDING_FLOPS: Final = 0.02 * A100_PEAK
"""Assumed: look-ups and small dense layers are bound by memory."""

GRADIENT_ELEMENT: Final = 2
"""Bytes per gradient element on the wire."""
OVERLAP: Final = 0.6
"""Assumed: the backward pass is 2/3 of an iteration; the first gradients go out soon after it has begun
(Li et al., "PyTorch Distributed", VLDB 2020)."""

_SC21 = "FLOPs: Narayanan et al., SC'21"
_BERT = "dimensions: Devlin et al., BERT (NAACL 2019), section 3"
_GPT2 = "dimensions: Radford et al., GPT-2 (2019), table 2"
_GPT3 = "dimensions: Brown et al., GPT-3 (NeurIPS 2020), table 2.1"
_CRUX = "dimensions: GPT-3 with 24 layers and hidden 1024, Crux (SIGCOMM'24) section 2.2"
_RESNET = "layers: He et al. (CVPR 2016), table 1"
_VGG = "layers: Simonyan and Zisserman (ICLR 2015), table 1"
_NMT = "dimensions: Vaswani et al. (2017), table 3"
_SWITCH = "dimensions: Fedus et al., Switch-Base (JMLR 2022), table 9"
_DLRM = "dimensions: MLPerf training, DLRM on Criteo 1TB; Naumov et al. (2019)"
_COMIREC = "dimensions: Cen et al., ComiRec (KDD 2020), Taobao"


def _data_parallel(
    name: str,
    title: str,
    parameters: float,
    flops: float,
    achieved: float,
    batch: int,
    sources: tuple[str, ...],
    largest_tensor: int,
    tensor_parallel: int = 1,
) -> Model:
    """A model whose replicas, of ``tensor_parallel`` GPUs inside a host each, allreduce their gradient.

    The tensor-parallel ranks share one gradient between them, so a host exchanges it once.
    """
    gradient = parameters * GRADIENT_ELEMENT
    layout = "data parallel" if tensor_parallel == 1 else f"tensor parallel {tensor_parallel} in a host, data parallel"
    phase = PhaseTemplate(1.0, "hierarchical", gradient, OVERLAP)
    return Model(
        name,
        title,
        parameters,
        flops / tensor_parallel,
        gradient,
        achieved,
        batch / tensor_parallel,
        layout,
        (phase,),
        sources,
        skew=largest_tensor / parameters,
    )


def _transformer(
    name: str, title: str, shape: Transformer, batch: int, length: int, source: str, tensor_parallel: int = 1
) -> Model:
    flops = BACKWARD_AND_FORWARD * shape.forward_flops(batch, length)
    sources = (source, _SC21, f"batch: {batch} sequences of {length} tokens per replica")
    largest = shape.largest_tensor
    return _data_parallel(
        name, title, shape.parameters, flops, TRANSFORMER_FLOPS, batch, sources, largest, tensor_parallel
    )


def _convnet(name: str, title: str, layers: tuple[convnets.Layer, ...], batch: int, source: str) -> Model:
    flops = BACKWARD_AND_FORWARD * convnets.forward_flops(layers) * batch
    sources = (source, f"batch: {batch} images of 224 x 224 per GPU")
    size, largest = convnets.parameters(layers), convnets.largest_tensor(layers)
    return _data_parallel(name, title, size, flops, CONVNET_FLOPS, batch, sources, largest)


def _translator(name: str, title: str, shape: Translator, sentences: int, length: int) -> Model:
    flops = BACKWARD_AND_FORWARD * shape.forward_flops(sentences, length)
    sources = (_NMT, _SC21, f"batch: {sentences} sentence pairs of {length} tokens per GPU")
    largest = shape.largest_tensor
    return _data_parallel(name, title, shape.parameters, flops, TRANSFORMER_FLOPS, sentences, sources, largest)


def _moe(name: str, title: str, shape: SwitchTransformer, batch: int, length: int, capacity: float) -> Model:
    """Dispatch and combine, forward and backward: four all-to-alls per expert layer.

    Those of all expert layers are joined into four, of the same bytes in total, so that an
    iteration has five phases. Expert gradients stay where their expert is; dense ones are allreduced.
    """
    exchange = shape.expert_layers * shape.exchange_bytes(batch, length, capacity)
    gradient = float(shape.dense_parameters * GRADIENT_ELEMENT)
    forward, backward = 1 / 6, 2 / 6
    phases = (
        PhaseTemplate(forward, "alltoall", exchange, 0.0),
        PhaseTemplate(forward, "alltoall", exchange, 0.0, returning=True),
        PhaseTemplate(backward / 2, "alltoall", exchange, 0.0),
        PhaseTemplate(backward, "alltoall", exchange, 0.0, returning=True),
        PhaseTemplate(backward / 2, "hierarchical", gradient, OVERLAP),
    )
    flops = BACKWARD_AND_FORWARD * shape.forward_flops(batch, length, capacity)
    experts = shape.expert_flops(batch, length, capacity) / shape.forward_flops(batch, length, capacity)
    sources = (_SWITCH, f"batch: {batch} sequences of {length} tokens per GPU, capacity factor {capacity:g}")
    return Model(
        name,
        title,
        shape.parameters,
        flops,
        gradient,
        EXPERT_FLOPS,
        batch,
        "expert parallel over all GPUs, the rest data parallel",
        phases,
        sources,
        experts,
        shape.largest_tensor / shape.dense_parameters,
        shape.expert_layers,
    )


def _embedding(name: str, title: str, shape: ClickModel | InterestModel, batch: int, source: str) -> Model:
    """Looked-up rows arrive before the compute, their gradients leave after it, the dense gradient last."""
    exchange, gradient = shape.exchange_bytes(batch), float(shape.dense_parameters * GRADIENT_ELEMENT)
    phases = (
        PhaseTemplate(0.0, "alltoall", exchange, 0.0),
        PhaseTemplate(0.9, "alltoall", exchange, 0.0),
        PhaseTemplate(0.1, "hierarchical", gradient, OVERLAP),
    )
    flops = BACKWARD_AND_FORWARD * shape.forward_flops * batch
    sources = (source, f"batch: {batch} samples per GPU")
    return Model(
        name,
        title,
        shape.parameters,
        flops,
        gradient,
        EMBEDDING_FLOPS,
        batch,
        "tables sharded over all GPUs, dense layers data parallel",
        phases,
        sources,
        skew=shape.largest_tensor / shape.dense_parameters,
    )


_CONVNETS: Final[dict[str, tuple[convnets.Layer, ...]]] = {
    "resnet": convnets.resnet((3, 4, 6, 3)),
    "resnet152": convnets.resnet((3, 8, 36, 3)),
    "vgg": convnets.vgg((2, 2, 3, 3, 3)),
    "vgg19": convnets.vgg((2, 2, 4, 4, 4)),
}

_DERIVED: Final = (
    _transformer("gpt", "GPT-3 variant, 0.36 B", Transformer(24, 1024, 50257, 2048), 16, 2048, _CRUX),
    _transformer("gpt2-xl", "GPT-2 XL, 1.6 B", Transformer(48, 1600, 50257, 1024), 8, 1024, _GPT2),
    _transformer("gpt-6.7b", "GPT-3 6.7 B", Transformer(32, 4096, 50257, 2048), 8, 2048, _GPT3, tensor_parallel=8),
    _transformer("bert", "BERT-large, 0.34 B", Transformer(24, 1024, 30522, 512, 2, True), 32, 512, _BERT),
    _transformer("bert-base", "BERT-base, 0.11 B", Transformer(12, 768, 30522, 512, 2, True), 64, 512, _BERT),
    _convnet("resnet", "ResNet-50, 26 M", _CONVNETS["resnet"], 256, _RESNET),
    _convnet("resnet152", "ResNet-152, 60 M", _CONVNETS["resnet152"], 128, _RESNET),
    _convnet("vgg", "VGG16, 138 M", _CONVNETS["vgg"], 128, _VGG),
    _convnet("vgg19", "VGG19, 144 M", _CONVNETS["vgg19"], 128, _VGG),
    _translator("nmt", "Transformer big, 0.21 B", Translator(6, 1024, 4096, 37000), 128, 40),
    _translator("nmt-base", "Transformer base, 65 M", Translator(6, 512, 2048, 37000), 128, 40),
    _moe("moe", "Switch-Base, 7.4 B, 128 experts", SwitchTransformer(12, 768, 2048, 128, 32128), 16, 512, 1.25),
    _embedding(
        "ctr", "DLRM, 24 B", ClickModel(CRITEO_ROWS, 128, 13, (512, 256, 128), (1024, 1024, 512, 256, 1)), 8192, _DLRM
    ),
    _embedding("multi-interests", "ComiRec-SA, 109 M", InterestModel(1_708_530, 64, 50, 4, 10), 4096, _COMIREC),
)


def _catalogue() -> Mapping[str, Model]:
    derived = {model.name: model for model in _DERIVED}
    calibrated = {
        name: calibrate(name, derived[calibration.derived_from], calibration)
        for name, calibration in CALIBRATED.items()
    }
    return MappingProxyType({**derived, **calibrated})


CATALOGUE: Final[Mapping[str, Model]] = _catalogue()
"""Model name -> model; ``crux-...`` are the calibrated jobs of :mod:`workloads.models.calibration`."""

LAYERS: Final[Mapping[str, tuple[convnets.Layer, ...]]] = MappingProxyType(
    _CONVNETS
    | {name: _CONVNETS[each.derived_from] for name, each in CALIBRATED.items() if each.derived_from in _CONVNETS}
)
"""Convolutional network -> its layers."""
