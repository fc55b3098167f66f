"""RALP: which layers a worker keeps, and which the parameter server computes (Park et al., arXiv 1901.05803).

A fully connected layer has many bytes and few FLOPs. If the server computes the layers from a cut on, workers send it
activations forward and take their gradients back, instead of the gradients and parameters of those layers.
In a run the server's shards are at all GPUs, as those of the collective ``parameter-server``; only bytes are modelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.models import convnets


@dataclass(frozen=True, slots=True)
class LayerBytes:
    """``parameters``: bytes; ``input_bytes`` of activations per sample that go into it."""

    parameters: float
    input_bytes: float


def exchanged_share(layers: Sequence[convnets.Layer], batch: float) -> float:
    """Return the share of the bytes of data parallelism that is left with the best cut before a dense layer, 0 to 1.

    ``batch`` samples per worker and iteration. 1 where no cut saves anything.
    """
    elements = [LayerBytes(layer.parameters, layer.inputs) for layer in layers]
    cuts = [place for place, layer in enumerate(layers) if layer.dense]
    whole = traffic(elements, len(elements), batch)
    return min(traffic(elements, first, batch) for first in (*cuts, len(elements))) / whole


def traffic(layers: Sequence[LayerBytes], first: int, batch: float) -> float:
    """Bytes that a worker of ``batch`` samples moves per iteration, both ways; the server has ``layers[first:]``."""
    kept = 2 * sum(layer.parameters for layer in layers[:first])
    return kept + (2 * layers[first].input_bytes * batch if first < len(layers) else 0.0)
