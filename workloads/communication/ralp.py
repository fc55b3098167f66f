"""RALP: which layers a worker keeps, and which the parameter server computes (Park et al., arXiv 1901.05803).

A fully connected layer has many bytes and few FLOPs. If the server computes the layers from a cut on, workers send it
activations forward and take their gradients back, instead of the gradients and parameters of those layers.
In a run the server's shards lie at all GPUs, as those of the collective ``parameter-server``; only bytes are modelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workloads.models import convnets


@dataclass(frozen=True, slots=True)
class LayerBytes:
    """``parameters``: bytes; ``input_bytes`` of activations per sample that go into it; ``flops`` per sample."""

    name: str
    parameters: float
    input_bytes: float
    flops: float = 0.0


@dataclass(frozen=True, slots=True)
class Cut:
    """Layers from ``first`` on are the server's; all are the workers' if it is their number.

    ``traffic``: bytes per worker and iteration, both directions.
    """

    first: int
    traffic: float
    data_parallel: float

    @property
    def saving(self) -> float:
        """How many times less traffic than with all layers on the workers."""
        return self.data_parallel / self.traffic


def exchanged_share(layers: Sequence[convnets.Layer], batch: float) -> float:
    """Return the share of the bytes of data parallelism that is left with the best cut before a dense layer, 0 to 1.

    ``batch`` samples per worker and iteration. 1 where no cut saves anything.
    """
    elements = [LayerBytes("", layer.parameters, layer.inputs) for layer in layers]
    cuts = [place for place, layer in enumerate(layers) if layer.dense]
    whole = traffic(elements, len(elements), batch)
    return min(traffic(elements, first, batch) for first in (*cuts, len(elements))) / whole


VGG16: Final[tuple[LayerBytes, ...]] = (
    LayerBytes("convolutions", 55.2e6, 0.0, 15.3e9),
    LayerBytes("fc6", 392e6, 4 * 25_088, 0.103e9),
    LayerBytes("fc7", 64e6, 4 * 4096, 0.017e9),
    LayerBytes("fc8", 15.6e6, 4 * 4096, 0.004e9),
)
"""VGG16, convolutions in one: sizes of its tensors; the activation before fc6 is 25,088 floats."""


def traffic(layers: Sequence[LayerBytes], first: int, batch: float) -> float:
    """Bytes that a worker of ``batch`` samples moves per iteration, both ways; the server has ``layers[first:]``."""
    kept = 2 * sum(layer.parameters for layer in layers[:first])
    return kept + (2 * layers[first].input_bytes * batch if first < len(layers) else 0.0)


def best_cut(
    layers: Sequence[LayerBytes], batch: int, workers: int, bits_per_s: float, server_flops_per_s: float
) -> Cut:
    """Return the cut with the shortest of the longer of two times: the link's, and the server's compute.

    ``bits_per_s`` is the link of a worker. Data parallel if nothing is shorter; ``ValueError`` for no layers.
    """
    if not layers or batch < 1 or workers < 1:
        raise ValueError("a cut needs layers, and a batch and workers of at least 1")
    whole = traffic(layers, len(layers), batch)

    def seconds(first: int) -> float:
        computed = 3 * workers * batch * sum(layer.flops for layer in layers[first:])  # forward once, backward twice
        return max(8 * traffic(layers, first, batch) / bits_per_s, computed / server_flops_per_s)

    first = min(range(len(layers), 0, -1), key=seconds)
    return Cut(first, traffic(layers, first, batch), whole)
