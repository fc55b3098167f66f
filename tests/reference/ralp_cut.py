"""RALP's choice of a cut by link and server speed (Park et al., arXiv 1901.05803), with the paper's VGG16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workloads.communication.ralp import LayerBytes, traffic


@dataclass(frozen=True, slots=True)
class ComputedLayer(LayerBytes):
    """A layer with its ``flops`` per sample."""

    name: str
    flops: float


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


VGG16: Final[tuple[ComputedLayer, ...]] = (
    ComputedLayer(55.2e6, 0.0, "convolutions", 15.3e9),
    ComputedLayer(392e6, 4 * 25_088, "fc6", 0.103e9),
    ComputedLayer(64e6, 4 * 4096, "fc7", 0.017e9),
    ComputedLayer(15.6e6, 4 * 4096, "fc8", 0.004e9),
)
"""VGG16, convolutions in one: sizes of its tensors; the activation before fc6 is 25,088 floats."""


def best_cut(
    layers: Sequence[ComputedLayer], batch: int, workers: int, bits_per_s: float, server_flops_per_s: float
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
