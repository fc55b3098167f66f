"""Transformers of today by their published dimensions: parameters, and FLOPs of a token.

Grouped-query or latent attention, gated or plain feed-forward blocks, experts in all layers or all but the first. FLOPs
count 2 per multiply-add of every weight that a token passes and all scores of its sequence, also those that a causal
mask hides, as Narayanan et al. (SC'21, appendix) and most training reports do. Norms and softmax are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_LAYERS: Final = 10_000
MOST: Final = 10_000_000
"""Of any other dimension."""
BACKWARD: Final = 2.0
"""FLOPs of a backward pass per FLOP of its forward pass: half for the gradient of inputs, half for that of weights."""


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture: ``per_token`` of ``count`` experts of ``hidden`` units, and ``shared`` ones that all tokens pass.

    The first ``dense_layers`` layers have none. The experts of a token lie on ``most_nodes`` hosts at most, 0 for any.
    """

    count: int
    per_token: int
    hidden: int
    shared: int = 0
    dense_layers: int = 0
    most_nodes: int = 0


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, section 2.1): ranks and sizes per head; ``query_rank`` 0: none."""

    query_rank: int
    key_value_rank: int
    rotary: int
    plain: int
    value: int


@dataclass(frozen=True, slots=True)
class Transformer:
    """Dimensions of a decoder, or of a stack like one.

    ``positions`` learned position embeddings; ``tied``: the output layer is the token embedding; ``biases`` in all
    linear layers, and norms with two vectors; ``query_norms``: norms of queries and keys per head; ``conditioned``:
    layers that scale and shift by a condition (six vectors a layer, DiT). ``vocabulary`` 0: what goes in and out is not
    counted.
    """

    name: str
    title: str
    layers: int
    hidden: int
    heads: int
    key_value_heads: int
    head_size: int
    feed_forward: int
    vocabulary: int
    gated: bool = True
    tied: bool = False
    biases: bool = False
    query_norms: bool = False
    positions: int = 0
    conditioned: bool = False
    experts: Experts | None = None
    latent: LatentAttention | None = None
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "key_value_heads", "head_size", "feed_forward"):
            if not 1 <= getattr(self, name) <= MOST:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 1 to {MOST}")
        if self.layers > MOST_LAYERS:
            raise ValueError(f"layers is {self.layers}, expected at most {MOST_LAYERS}")
        if self.heads % self.key_value_heads:
            raise ValueError(f"key_value_heads is {self.key_value_heads}, expected a divisor of {self.heads} heads")
        if self.experts is not None and not 0 <= self.experts.dense_layers <= self.layers:
            raise ValueError(f"dense_layers is {self.experts.dense_layers}, expected 0 to {self.layers}")

    @property
    def attention_weights(self) -> int:
        """Weights of the matrices of one attention block."""
        h, heads = self.hidden, self.heads
        if self.latent is None:
            return 2 * h * self.head_size * (heads + self.key_value_heads)
        latent = self.latent
        key = latent.plain + latent.rotary
        queries = latent.query_rank * (h + heads * key) if latent.query_rank else h * heads * key
        compressed = h * (latent.key_value_rank + latent.rotary)
        return (
            queries
            + compressed
            + heads * latent.key_value_rank * (latent.plain + latent.value)
            + heads * latent.value * h
        )

    @property
    def key_value_width(self) -> int:
        """Numbers that a layer keeps of a token: keys and values, or their latent vector and the rotary key."""
        if self.latent is not None:
            return self.latent.key_value_rank + self.latent.rotary
        return 2 * self.key_value_heads * self.head_size

    @property
    def dense_weights(self) -> int:
        """Weights of a feed-forward block without experts."""
        return (3 if self.gated else 2) * self.hidden * self.feed_forward

    @property
    def expert_weights(self) -> int:
        """Weights of one expert; 0 without any."""
        return 0 if self.experts is None else (3 if self.gated else 2) * self.hidden * self.experts.hidden

    def has_experts(self, layer: int) -> bool:
        """Whether ``layer``, counted from 0, has experts."""
        return self.experts is not None and layer >= self.experts.dense_layers

    def layer_weights(self, layer: int, *, active: bool = False) -> int:
        """Weights of matrices of ``layer``; ``active``: only those that a token passes."""
        if not self.has_experts(layer) or self.experts is None:
            return self.attention_weights + self.dense_weights
        count = self.experts.per_token if active else self.experts.count
        return (
            self.attention_weights
            + self.hidden * self.experts.count
            + (count + self.experts.shared) * self.expert_weights
        )

    def layer_parameters(self, layer: int, *, active: bool = False) -> int:
        """Weights, biases and norms of ``layer``."""
        return self.layer_weights(layer, active=active) + self._vectors

    @property
    def _vectors(self) -> int:
        """Biases, norms and conditions of a layer."""
        h = self.hidden
        found = 4 * h if self.biases else 2 * h
        if self.biases:
            found += self.head_size * (self.heads + 2 * self.key_value_heads) + h + self.feed_forward + h
        if self.query_norms:
            found += 2 * self.head_size
        if self.conditioned:
            found += 6 * h * h + 6 * h
        if self.latent is not None:
            found += self.latent.query_rank + self.latent.key_value_rank
        return found

    @property
    def embedding(self) -> int:
        """Parameters of the token embedding and learned positions."""
        return (self.vocabulary + self.positions) * self.hidden

    @property
    def head(self) -> int:
        """Parameters of an output layer of its own."""
        return 0 if self.tied else self.vocabulary * self.hidden

    @property
    def final_norm(self) -> int:
        """Parameters of the norm after the last layer."""
        return (2 if self.biases else 1) * self.hidden

    @property
    def parameters(self) -> int:
        """Of the whole model."""
        return self._outside + sum(self.layer_parameters(layer) for layer in range(self.layers))

    @property
    def active_parameters(self) -> int:
        """Those that a token passes, embeddings included."""
        return self._outside + sum(self.layer_parameters(layer, active=True) for layer in range(self.layers))

    @property
    def _outside(self) -> int:
        return self.embedding + self.head + self.final_norm

    @property
    def dense_parameters(self) -> int:
        """All but those of experts that tokens choose."""
        routed = 0 if self.experts is None else self.experts.count * self.expert_weights
        layers = sum(self.has_experts(layer) for layer in range(self.layers))
        return self.parameters - layers * routed

    def attention_flops(self, length: float) -> float:
        """Of the scores and the weighted sum of a token in a sequence of ``length``, one layer, forward."""
        if self.latent is not None:
            return 2 * length * self.heads * (self.latent.plain + self.latent.rotary + self.latent.value)
        return 4 * length * self.heads * self.head_size

    def layer_flops(self, layer: int, length: float) -> float:
        """Of a token in ``layer``, forward."""
        return 2 * self.layer_weights(layer, active=True) + self.attention_flops(length)

    @property
    def head_flops(self) -> float:
        """Of a token in the output layer, forward."""
        return 2.0 * self.vocabulary * self.hidden

    def forward_flops(self, length: float) -> float:
        """Of a token in a sequence of ``length``, forward through all layers."""
        return self.head_flops + sum(self.layer_flops(layer, length) for layer in range(self.layers))

    def training_flops(self, length: float) -> float:
        """Of a token, forward and backward, without recomputation."""
        return (1 + BACKWARD) * self.forward_flops(length)
