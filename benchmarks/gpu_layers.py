"""How long the layers of a large model compute on this machine's GPU: forward and backward, with PyTorch.

Writes a file that jobs take as ``layer_times``. Each layer is one rank's part of a tensor group, in bf16, on one
microbatch of random values; attention is PyTorch's fused one, experts get equally many tokens each. Medians of the
GPU's own clock. Without PyTorch or a GPU there is nothing to measure, and jobs use the published share of peak.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.common import Line, parser_of, report, say
from testbed.errors import EXIT_BAD_INPUT, EXIT_OK
from workloads.imported.errors import WorkloadFileError
from workloads.training.gpus import GPUS, Gpu
from workloads.training.layer_times import PassTimes
from workloads.training.layout import ParallelLayout
from workloads.training.plan import TrainingPlan
from workloads.training.shape_files import read_config, shapes
from workloads.training.transformer import LatentAttention

TITLE: Final = "Layers of a large model on this GPU"
WARM_UP: Final = 5
REPEATS: Final = 30

Tensor = Any
Layer = Callable[[Tensor], Tensor]


class Layers:
    """One rank's part of the layers of ``plan``, with random weights on ``device``; ``torch`` is the module."""

    def __init__(self, torch: Any, device: str, plan: TrainingPlan) -> None:
        self._torch, self._device, self._plan = torch, device, plan
        self._shape, self._tensor = plan.shape, plan.layout.tensor
        self._functions = torch.nn.functional
        self.weights: list[Tensor] = []

    def values(self, *size: int) -> Tensor:
        """A tensor of random values of which gradients are computed."""
        drawn = 0.02 * self._torch.randn(size, device=self._device, dtype=self._torch.bfloat16)
        return drawn.requires_grad_()

    def _weight(self, *size: int) -> Tensor:
        self.weights.append(self.values(*size))
        return self.weights[-1]

    def transformer(self, *, experts: bool) -> Layer:
        """Attention and a feed-forward block, each behind a norm and beside what goes past it."""
        attention = self._normed(self._attention())
        block = self._normed(self._experts() if experts else self._dense(self._shape.feed_forward))

        def layer(x: Tensor) -> Tensor:
            x = x + attention(x)
            return x + block(x)

        return layer

    def output(self) -> Layer:
        """Logits of this rank's part of the vocabulary, and their cross-entropy."""
        words = self._shape.vocabulary // self._tensor
        project = self._normed(self._linear(self._shape.hidden, words))
        asked = self._torch.randint(words, (self._plan.microbatch * self._plan.sequence,), device=self._device)
        return lambda x: self._functions.cross_entropy(project(x).view(-1, words), asked)

    def _normed(self, layer: Layer) -> Layer:
        hidden = self._shape.hidden
        scale = self._weight(hidden)
        return lambda x: layer(self._functions.rms_norm(x, (hidden,), scale))

    def _linear(self, inputs: int, outputs: int) -> Layer:
        weight = self._weight(outputs, inputs)
        return lambda x: self._functions.linear(x, weight)

    def _dense(self, units: int) -> Layer:
        shape, units = self._shape, units // self._tensor
        up, down = self._linear(shape.hidden, units), self._linear(units, shape.hidden)
        if not shape.gated:
            return lambda x: down(self._functions.gelu(up(x)))
        gate = self._linear(shape.hidden, units)
        return lambda x: down(self._functions.silu(gate(x)) * up(x))

    def _experts(self) -> Layer:
        """This rank's experts, each with equally many tokens, and those that all tokens pass."""
        hidden, mixture = self._shape.hidden, self._shape.experts
        assert mixture is not None
        router = self._linear(hidden, mixture.count)
        local = [self._dense(mixture.hidden) for _ in range(mixture.count // self._plan.layout.expert)]
        shared = [self._dense(mixture.hidden) for _ in range(mixture.shared)]

        def layer(x: Tensor) -> Tensor:
            tokens = x.reshape(-1, hidden)
            weights, _ = self._torch.topk(router(tokens).softmax(-1), mixture.per_token)
            routed = tokens.repeat(mixture.per_token, 1)
            parts = self._torch.tensor_split(routed, len(local))
            done = self._torch.cat([expert(part) for expert, part in zip(local, parts, strict=True)])
            done = done.view(mixture.per_token, *tokens.shape) * weights.t().unsqueeze(-1)
            return (done.sum(0) + sum(expert(tokens) for expert in shared)).view_as(x)

        return layer

    def _attention(self) -> Layer:
        latent = self._shape.latent
        return self._grouped_attention() if latent is None else self._latent_attention(latent)

    def _grouped_attention(self) -> Layer:
        shape, heads = self._shape, self._shape.heads // self._tensor
        pairs = max(1, shape.key_value_heads // self._tensor)
        query = self._linear(shape.hidden, heads * shape.head_size)
        key, value = (self._linear(shape.hidden, pairs * shape.head_size) for _ in range(2))
        project = self._linear(heads * shape.head_size, shape.hidden)
        turn = self._rotation(shape.head_size)

        def layer(x: Tensor) -> Tensor:
            q, k, v = (made(x).view(*x.shape[:2], -1, shape.head_size).transpose(1, 2) for made in (query, key, value))
            k, v = (each.repeat_interleave(heads // pairs, 1) for each in (turn(k), v))
            return project(self._scores(turn(q), k, v))

        return layer

    def _latent_attention(self, latent: LatentAttention) -> Layer:
        """Multi-head latent attention (DeepSeek-V2, section 2.1), with keys and values of all heads."""
        shape, heads = self._shape, self._shape.heads // self._tensor
        width = latent.plain + latent.rotary
        squeezed = self._linear(shape.hidden, latent.query_rank) if latent.query_rank else (lambda x: x)
        query = self._linear(latent.query_rank or shape.hidden, heads * width)
        down = self._linear(shape.hidden, latent.key_value_rank + latent.rotary)
        key = self._linear(latent.key_value_rank, heads * (latent.plain + latent.value))
        project = self._linear(heads * latent.value, shape.hidden)
        turn = self._rotation(latent.rotary)

        def layer(x: Tensor) -> Tensor:
            q = query(squeezed(x)).view(*x.shape[:2], heads, width).transpose(1, 2)
            q, q_turned = q.split([latent.plain, latent.rotary], -1)
            common, k_turned = down(x).split([latent.key_value_rank, latent.rotary], -1)
            both = key(common).view(*x.shape[:2], heads, latent.plain + latent.value).transpose(1, 2)
            k, v = both.split([latent.plain, latent.value], -1)
            k_turned = turn(k_turned.unsqueeze(1)).expand(-1, heads, -1, -1)
            join = self._torch.cat
            return project(self._scores(join([q, turn(q_turned)], -1), join([k, k_turned], -1), v))

        return layer

    def _scores(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        found = self._functions.scaled_dot_product_attention(query, key, value, is_causal=True)
        return found.transpose(1, 2).flatten(2)

    def _rotation(self, size: int) -> Layer:
        """Rotary position embeddings of the last dimension."""
        rates = 10_000.0 ** (-self._torch.arange(0, size, 2, device=self._device) / size)
        angles = self._torch.outer(self._torch.arange(self._plan.sequence, device=self._device), rates)
        cosine, sine = (each.to(self._torch.bfloat16) for each in (angles.cos(), angles.sin()))

        def turn(x: Tensor) -> Tensor:
            first, second = x.chunk(2, -1)
            return self._torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)

        return turn


def measured(torch: Any, device: str, plan: TrainingPlan) -> Iterator[tuple[str, float, PassTimes]]:
    """Yield the name of each kind of layer, FLOPs of its forward pass per rank, and how long its passes take."""
    shape, tokens = plan.shape, plan.tokens / plan.layout.tensor
    numbers = {shape.has_experts(layer): layer for layer in range(shape.layers)}
    for experts, number in sorted(numbers.items()):
        layers = Layers(torch, device, plan)
        times = _timed(torch, device, layers, plan, layers.transformer(experts=experts))
        yield ("expert_layer" if experts else "dense_layer"), tokens * shape.layer_flops(number, plan.sequence), times
    layers = Layers(torch, device, plan)
    yield "output_layer", tokens * shape.head_flops, _timed(torch, device, layers, plan, layers.output())


def _timed(torch: Any, device: str, layers: Layers, plan: TrainingPlan, layer: Layer) -> PassTimes:
    given = layers.values(plan.microbatch, plan.sequence, plan.shape.hidden)
    found = []
    for _ in range(WARM_UP + REPEATS):
        for tensor in (given, *layers.weights):
            tensor.grad = None
        begin = _now(torch, device)
        result = layer(given)
        between = _now(torch, device)
        result.backward(torch.ones_like(result))
        found.append((between - begin, _now(torch, device) - between))
    forward, backward = zip(*found[WARM_UP:], strict=True)
    return PassTimes(median(forward), median(backward))


def _now(torch: Any, device: str) -> float:
    """Seconds, when all that was asked for is done."""
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> int:
    """Measure, write the file and show it; see the module."""
    asked = _parser().parse_args()
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        say("skipped: no PyTorch; jobs use the published share of peak")
        return EXIT_OK
    if asked.device == "cuda" and not torch.cuda.is_available():
        say("skipped: no GPU; jobs use the published share of peak")
        return EXIT_OK
    try:
        plan = _plan(asked)
    except (ValueError, WorkloadFileError) as error:
        say(str(error))
        return EXIT_BAD_INPUT
    name = torch.cuda.get_device_name() if asked.device == "cuda" else "CPU"
    rows = list(measured(torch, asked.device, plan))
    asked.out.write_text(json.dumps(_document(plan, name, torch.__version__, rows), indent=1) + "\n")
    lines = [_line(*row, _known(name)) for row in rows]
    return report(f"{TITLE}: {name}, written to {asked.out}", lines, as_json=asked.json)


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(TITLE)
    parser.add_argument("--model", default="llama3-8b", help="a large model, or the config.json of a release")
    for name, value in (("sequence", 4096), ("microbatch", 1), ("tensor", 1), ("expert", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: only to try the program")
    parser.add_argument("--out", type=Path, default=Path("layer-times.json"))
    return parser


def _plan(asked: argparse.Namespace) -> TrainingPlan:
    shape = shapes()[asked.model] if asked.model in shapes() else read_config(Path(asked.model))
    if shape.vocabulary == 0:
        raise ValueError(f"model is {shape.title}, expected one that makes tokens")
    layout = ParallelLayout(asked.tensor * asked.expert, asked.tensor, expert=asked.expert)
    return TrainingPlan(shape, GPUS["h100"], layout, asked.sequence, 1, asked.microbatch)


def _document(
    plan: TrainingPlan, gpu: str, version: str, rows: list[tuple[str, float, PassTimes]]
) -> Mapping[str, object]:
    return {
        "gpu": gpu,
        "torch": version,
        "model": plan.shape.name,
        "precision": plan.precision,
        "sequence": plan.sequence,
        "microbatch": plan.microbatch,
        "tensor": plan.layout.tensor,
        "expert": plan.layout.expert,
        **{name: {"forward_s": times.forward_s, "backward_s": times.backward_s} for name, _, times in rows},
    }


def _known(name: str) -> Gpu | None:
    """The GPU of this project with the name that the driver gives."""
    return next((gpu for key, gpu in GPUS.items() if key.upper() in name.upper()), None)


def _line(name: str, flops: float, times: PassTimes, gpu: Gpu | None) -> Line:
    both_s = times.forward_s + times.backward_s
    share = "" if gpu is None else f"{3 * flops / both_s / gpu.bf16:.1%}"
    return Line(
        {
            "layer": name,
            "forward ms": round(1000 * times.forward_s, 3),
            "backward ms": round(1000 * times.backward_s, 3),
            "share of peak": share,
        }
    )


if __name__ == "__main__":
    raise SystemExit(main())
