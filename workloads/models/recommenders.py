"""Parameters, FLOPs and bytes of models that are mostly embedding tables.

The tables are sharded over the job's GPUs, so looked-up rows travel in an all-to-all and their
gradients in another; the small dense part is replicated and its gradient allreduced (Naumov et
al., "Deep Learning Recommendation Model", 2019, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

CRITEO_ROWS: Final = (
    39884406,
    39043,
    17289,
    7420,
    20263,
    3,
    7120,
    1543,
    63,
    38532951,
    2953546,
    403346,
    10,
    2208,
    11938,
    155,
    4,
    976,
    14,
    39979771,
    25641295,
    39664984,
    585935,
    12972,
    108,
    36,
)
"""Rows of the 26 tables of Criteo 1TB, indices capped at 40 million (MLPerf training, DLRM)."""


def perceptron_parameters(widths: Sequence[int]) -> int:
    """Weights and biases of dense layers of the given widths."""
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def perceptron_flops(widths: Sequence[int]) -> float:
    """FLOPs of dense layers of the given widths for one sample, forward."""
    return sum(2.0 * inputs * outputs for inputs, outputs in pairwise(widths))


@dataclass(frozen=True, slots=True)
class ClickModel:
    """DLRM: tables of ``rows``, rows of ``dimension``, a bottom and a top perceptron.

    The dot products of all pairs of the embedded features and the bottom's output, and that
    output, enter the top.
    """

    rows: tuple[int, ...]
    dimension: int
    dense_features: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]

    @property
    def _bottom(self) -> tuple[int, ...]:
        return (self.dense_features, *self.bottom)

    @property
    def _top(self) -> tuple[int, ...]:
        return (self._pairs + self.dimension, *self.top)

    @property
    def _pairs(self) -> int:
        features = len(self.rows) + 1
        return features * (features - 1) // 2

    @property
    def dense_parameters(self) -> int:
        """Parameters of both perceptrons."""
        return perceptron_parameters(self._bottom) + perceptron_parameters(self._top)

    @property
    def largest_tensor(self) -> int:
        """Parameters of the largest matrix of the perceptrons."""
        layers = (*pairwise(self._bottom), *pairwise(self._top))
        return max(inputs * outputs for inputs, outputs in layers)

    @property
    def parameters(self) -> int:
        """Dense parameters and tables."""
        return self.dense_parameters + sum(self.rows) * self.dimension

    @property
    def forward_flops(self) -> float:
        """FLOPs for one sample, forward."""
        return perceptron_flops(self._bottom) + perceptron_flops(self._top) + 2.0 * self._pairs * self.dimension

    def exchange_bytes(self, samples: float, element: int = 2) -> float:
        """Bytes a GPU hands to one all-to-all: one row per table and sample."""
        return samples * len(self.rows) * self.dimension * element


@dataclass(frozen=True, slots=True)
class InterestModel:
    """ComiRec-SA (Cen et al., KDD 2020): self-attention pulls ``interests`` vectors out of a click history.

    ``items`` rows of ``dimension``; attention with an inner width of four dimensions; softmax over
    ``negatives`` sampled items per sample.
    """

    items: int
    dimension: int
    history: int
    interests: int
    negatives: int

    @property
    def dense_parameters(self) -> int:
        """Position embeddings and the two attention matrices."""
        inner = 4 * self.dimension
        return self.history * self.dimension + self.dimension * inner + inner * self.interests

    @property
    def largest_tensor(self) -> int:
        """Parameters of the largest of the dense ones."""
        return 4 * self.dimension * max(self.dimension, self.interests)

    @property
    def parameters(self) -> int:
        """Dense parameters and the item table."""
        return self.dense_parameters + self.items * self.dimension

    @property
    def forward_flops(self) -> float:
        """FLOPs for one sample, forward."""
        inner = 4 * self.dimension
        attention = self.history * (self.dimension * inner + inner * self.interests + self.interests * self.dimension)
        return 2.0 * (attention + (self.negatives + 1) * self.dimension)

    def exchange_bytes(self, samples: float, element: int = 4) -> float:
        """Bytes a GPU hands to one all-to-all: history, target and negatives of every sample."""
        return samples * (self.history + 1 + self.negatives) * self.dimension * element
