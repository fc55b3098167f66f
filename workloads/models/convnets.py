"""Parameters and FLOPs of convolutional networks, counted layer by layer.

ResNet: He et al., "Deep Residual Learning for Image Recognition" (CVPR 2016), table 1, with the
stride in the 3x3 convolution as trained today. VGG: Simonyan and Zisserman (ICLR 2015), table 1.
Images are 224 x 224. FLOPs are 2 per multiply-add of convolutions and dense layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

CLASSES: Final = 1000


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution (or, with ``side`` and ``kernel`` 1, a dense layer) and the norm or bias after it.

    ``side`` is the side of its output; ``extra`` counts biases, or scale and shift of a batch norm.
    """

    inputs: int
    outputs: int
    kernel: int
    side: int
    extra: int

    @property
    def parameters(self) -> int:
        """Weights and what follows them."""
        return self.inputs * self.outputs * self.kernel**2 + self.extra

    @property
    def dense(self) -> bool:
        """Whether every output depends on every input."""
        return self.side == 1 and self.kernel == 1

    @property
    def flops(self) -> float:
        """FLOPs for one image, forward."""
        return 2.0 * self.inputs * self.outputs * self.kernel**2 * self.side**2


def parameters(layers: Iterable[Layer]) -> int:
    """Parameters of a network."""
    return sum(layer.parameters for layer in layers)


def largest_tensor(layers: Iterable[Layer]) -> int:
    """Parameters of the largest tensor: the weights of one layer."""
    return max(layer.parameters - layer.extra for layer in layers)


def forward_flops(layers: Iterable[Layer]) -> float:
    """FLOPs of a network for one image, forward."""
    return sum(layer.flops for layer in layers)


def resnet(blocks: tuple[int, int, int, int]) -> tuple[Layer, ...]:
    """A ResNet of bottleneck blocks, ``blocks`` per stage: (3, 4, 6, 3) is ResNet-50."""
    return tuple(_resnet(blocks))


def _resnet(blocks: tuple[int, int, int, int]) -> Iterator[Layer]:
    yield _normed(3, 64, 7, 112)
    inputs = 64
    for stage, count in enumerate(blocks):
        width, side = 64 << stage, 56 >> stage
        for block in range(count):
            entry = side if block or not stage else 2 * side
            yield _normed(inputs, width, 1, entry)
            yield _normed(width, width, 3, side)
            yield _normed(width, 4 * width, 1, side)
            if not block:
                yield _normed(inputs, 4 * width, 1, side)
            inputs = 4 * width
    yield Layer(inputs, CLASSES, 1, 1, CLASSES)


def vgg(convolutions: tuple[int, int, int, int, int]) -> tuple[Layer, ...]:
    """A VGG with ``convolutions`` per stage: (2, 2, 3, 3, 3) is VGG16, (2, 2, 4, 4, 4) VGG19."""
    return tuple(_vgg(convolutions))


def _vgg(convolutions: tuple[int, ...]) -> Iterator[Layer]:
    inputs = 3
    for stage, count in enumerate(convolutions):
        width = min(64 << stage, 512)
        for _ in range(count):
            yield Layer(inputs, width, 3, 224 >> stage, width)
            inputs = width
    for wide, narrow in ((512 * 7 * 7, 4096), (4096, 4096), (4096, CLASSES)):
        yield Layer(wide, narrow, 1, 1, narrow)


def _normed(inputs: int, outputs: int, kernel: int, side: int) -> Layer:
    return Layer(inputs, outputs, kernel, side, 2 * outputs)
