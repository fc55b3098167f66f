"""Parameters, FLOPs and bytes of transformers, counted from their published dimensions.

FLOPs follow Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters"
(SC'21), appendix: 2 FLOP per multiply-add, and a backward pass of twice the forward one; no
activation recomputation. Softmax, norms and biases are left out of FLOPs, not of parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BACKWARD_AND_FORWARD: Final = 3.0
"""FLOPs of an iteration per FLOP of its forward pass."""


@dataclass(frozen=True, slots=True)
class Transformer:
    """Dimensions of a stack of self-attention layers (GPT, BERT).

    ``vocabulary`` rows of token embedding, tied to the output layer; ``positions`` learned position
    embeddings; ``segments`` segment embeddings and ``pooler`` a final dense layer (BERT).
    """

    layers: int
    hidden: int
    vocabulary: int
    positions: int
    segments: int = 0
    pooler: bool = False

    @property
    def parameters(self) -> int:
        """Weights, biases and norms: 12 h^2 + 13 h per layer, and the embeddings."""
        h = self.hidden
        embeddings = (self.vocabulary + self.positions + self.segments) * h
        return self.layers * (12 * h * h + 13 * h) + embeddings + 2 * h + self.pooler * (h * h + h)

    @property
    def largest_tensor(self) -> int:
        """Parameters of the largest: the token embedding, or a matrix of the feed-forward block."""
        return self.hidden * max(self.vocabulary, 4 * self.hidden)

    def forward_flops(self, sequences: float, length: int) -> float:
        """FLOPs of a forward pass over ``sequences`` sequences of ``length`` tokens, output layer included."""
        tokens, h = sequences * length, self.hidden
        per_layer = 24 * tokens * h * h + 4 * tokens * length * h
        return self.layers * per_layer + 2 * tokens * h * self.vocabulary


@dataclass(frozen=True, slots=True)
class Translator:
    """An encoder-decoder of Vaswani et al., "Attention Is All You Need" (2017), with shared embeddings.

    A decoder layer has a second attention block (4 h^2 weights); positions are sinusoids.
    """

    layers: int
    hidden: int
    feed_forward: int
    vocabulary: int

    @property
    def parameters(self) -> int:
        """Weights, biases and norms of both stacks, and one shared embedding."""
        h, f = self.hidden, self.feed_forward
        attention, dense, norm = 4 * (h * h + h), 2 * h * f + f + h, 2 * h
        encoder = attention + dense + 2 * norm
        decoder = 2 * attention + dense + 3 * norm
        return self.layers * (encoder + decoder) + self.vocabulary * h

    @property
    def largest_tensor(self) -> int:
        """Parameters of the largest: the embedding, or a matrix of the feed-forward block."""
        return self.hidden * max(self.vocabulary, self.feed_forward)

    def forward_flops(self, sentences: float, length: int) -> float:
        """FLOPs of a forward pass over ``sentences`` pairs, ``length`` tokens on either side."""
        tokens, h, f = sentences * length, self.hidden, self.feed_forward
        weights = self.layers * (12 * h * h + 4 * h * f)
        scores = self.layers * 3 * 4 * length * h
        return tokens * (2 * weights + scores + 2 * h * self.vocabulary)


@dataclass(frozen=True, slots=True)
class SwitchTransformer:
    """An encoder-decoder with experts: Fedus et al., "Switch Transformers" (JMLR 2022), table 9.

    ``layers`` each in encoder and decoder, every second of them with ``experts`` experts of which
    a token visits one; feed-forward blocks are GEGLU (three matrices); no biases; input and output
    embeddings apart.
    """

    layers: int
    hidden: int
    feed_forward: int
    experts: int
    vocabulary: int

    @property
    def expert_layers(self) -> int:
        """Layers with experts, both stacks together."""
        return self.layers

    @property
    def dense_parameters(self) -> int:
        """What every GPU holds: attention, plain feed-forward blocks, routers, embeddings."""
        h = self.hidden
        attention = self.layers * (4 + 8) * h * h
        plain = (2 * self.layers - self.expert_layers) * self._block
        return attention + plain + self.expert_layers * h * self.experts + 2 * self.vocabulary * h

    @property
    def largest_tensor(self) -> int:
        """Parameters of the largest of the dense ones: an embedding, or a matrix of a feed-forward block."""
        return self.hidden * max(self.vocabulary, self.feed_forward)

    @property
    def parameters(self) -> int:
        """Dense and expert parameters."""
        return self.dense_parameters + self.expert_layers * self.experts * self._block

    @property
    def _block(self) -> int:
        return 3 * self.hidden * self.feed_forward

    def forward_flops(self, sequences: float, length: int, capacity: float) -> float:
        """FLOPs of a forward pass; a stack sees ``length`` tokens per sequence, experts ``capacity`` times as many."""
        tokens, h = sequences * length, self.hidden
        attention = self.layers * (2 * 12 * h * h + 3 * 4 * length * h)
        plain = (2 * self.layers - self.expert_layers) * 2 * self._block
        routers = self.expert_layers * 2 * h * self.experts
        outside = tokens * (attention + plain + routers + 2 * h * self.vocabulary)
        return outside + self.expert_flops(sequences, length, capacity)

    def expert_flops(self, sequences: float, length: int, capacity: float) -> float:
        """What of :meth:`forward_flops` the experts do."""
        return sequences * length * self.expert_layers * capacity * 2 * self._block

    def exchange_bytes(self, sequences: float, length: int, capacity: float, element: int = 2) -> float:
        """Bytes a GPU hands to one all-to-all: its tokens of one expert layer, padded by ``capacity``.

        Both stacks have expert layers of equal width, so ``length`` tokens pass each of them.
        """
        return sequences * length * self.hidden * capacity * element
