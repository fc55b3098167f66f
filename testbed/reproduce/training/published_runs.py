"""Iterations of published training runs, computed from the shape of the model, its layout and the sheet of its GPUs.

One share of peak per type of GPU, from measurements of smaller models on one host (:mod:`workloads.training.gpus`);
nothing is fitted to the runs. What a paper does not say is assumed: the microbatch where there is no pipeline, and the
chunks of interleaving.

* Megatron-LM: Narayanan et al., SC'21, table 1: FLOP/s of each GPU, with what is computed again; 2,048 tokens, A100
  with eight NICs of 200 Gbit/s a host (section 5). Attention was not fused, gradients did not travel beside compute.
* MegaScale: Jiang et al., NSDI'24, table 2: a 175 B model on A100, tensor 8, pipeline 8, six chunks (section 6.1); of
  the two systems in it MegaScale hides the sums of tensor groups behind compute.
* Llama 3: Grattafiori et al., 2024, table 4: FLOP/s of each H100; gradients of 4 bytes (section 3.3.2), one layer less
  in the first and the last stage, so that chunks have one layer each.
* DeepSeek-V3: 2024, section 3.1 and table 1: hours of H800 per trillion tokens; batches of 15,360 sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.paper_experiment import PaperRow, Settings
from workloads.training.gpus import GPUS
from workloads.training.iteration import Cluster, IterationAlone, iteration_alone
from workloads.training.layout import ParallelLayout
from workloads.training.plan import TrainingPlan
from workloads.training.schedules import Schedule
from workloads.training.shape_files import shapes
from workloads.training.transformer import Transformer

TOLERANCE: Final = 0.15
A100_HOSTS: Final = Cluster(8, 200e9)
H100_HOSTS: Final = Cluster(8, 400e9)
SEQUENCE: Final = 2048


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A run: its ``plan`` on a ``cluster``; what its paper says, and what of an iteration computed here that is."""

    label: str
    plan: TrainingPlan
    cluster: Cluster
    published: float
    unit: str
    measure: Callable[[TrainingPlan, IterationAlone], float]


_MEGATRON: Final = (
    ("1.7B", 24, 2304, 24, 1, 1, 32, 512, 16, 1, 137),
    ("3.6B", 32, 3072, 30, 2, 1, 64, 512, 8, 1, 138),
    ("7.5B", 32, 4096, 36, 4, 1, 128, 512, 4, 1, 142),
    ("18.4B", 48, 6144, 40, 8, 1, 256, 1024, 4, 1, 135),
    ("39.1B", 64, 8192, 48, 8, 2, 512, 1536, 1, 2, 138),
    ("76.1B", 80, 10240, 60, 8, 4, 1024, 1792, 1, 3, 140),
    ("145.6B", 96, 12288, 80, 8, 8, 1536, 2304, 1, 2, 148),
    ("310.1B", 128, 16384, 96, 8, 16, 1920, 2160, 1, 2, 155),
    ("529.6B", 128, 20480, 105, 8, 35, 2520, 2520, 1, 3, 163),
    ("1008B", 160, 25600, 128, 8, 64, 3072, 3072, 1, 2, 163),
)
"""Model, heads, hidden, layers, tensor, pipeline, GPUs, batch: the table; microbatch, chunks: assumed; TFLOP/s."""
_MEGASCALE: Final = (
    (256, 768, 40.0, 32.0),
    (512, 768, 21.2, 16.5),
    (768, 768, 15.2, 11.5),
    (1024, 768, 11.9, 8.9),
    (3072, 6144, 29.02, 23.66),
    (6144, 6144, 14.78, 12.21),
    (8192, 6144, 12.24, 9.56),
    (12288, 6144, 8.57, 6.34),
)
"""GPUs, batch, seconds of an iteration of Megatron-LM and of MegaScale."""
_LLAMA: Final = ((8192, 1, 8192, 32, 430.0), (16384, 1, 8192, 16, 400.0), (16384, 16, 131072, 16, 380.0))
"""GPUs, context, tokens of a sequence, sequences per replica, TFLOP/s."""
_DEEPSEEK_HOURS: Final = 180e3


def published_runs() -> Iterator[PublishedRun]:
    """Yield every run."""
    for model, heads, hidden, layers, tensor, pipeline, gpus, batch, microbatch, chunks, published in _MEGATRON:
        layout = ParallelLayout(gpus, tensor, pipeline)
        plan = TrainingPlan(
            _gpt(model, layers, hidden, heads, 51200), GPUS["a100"], layout, SEQUENCE,
            batch // layout.data // microbatch, microbatch,
            Schedule("interleaved", chunks) if pipeline > 1 else Schedule(), "none",
            recompute="full", attention="unfused", overlap_gradients=False,
        )  # fmt: skip
        yield PublishedRun(f"Megatron-LM {model}", plan, A100_HOSTS, published, "TFLOP/s", _with_recomputation)
    for gpus, batch, megatron_s, megascale_s in _MEGASCALE:
        for system, took_s in (("Megatron-LM", megatron_s), ("MegaScale", megascale_s)):
            layout = ParallelLayout(gpus, 8, 8)
            plan = TrainingPlan(
                _gpt("175B", 96, 12288, 128, 64000), GPUS["a100"], layout, SEQUENCE, batch // layout.data, 1,
                Schedule("interleaved", 6), "zero-2", overlap_tensor=system == "MegaScale",
            )  # fmt: skip
            yield PublishedRun(f"{system} 175B, {gpus} GPUs", plan, A100_HOSTS, took_s, "s", _seconds)
    for gpus, context, sequence, microbatches, rate in _LLAMA:
        plan = TrainingPlan(
            shapes()["llama3-405b"], GPUS["h100"], ParallelLayout(gpus, 8, 16, context), sequence, microbatches, 1,
            Schedule("interleaved", 8), "zero-2", gradients="fp32",
        )  # fmt: skip
        yield PublishedRun(f"Llama 3 405B, {gpus} GPUs, {sequence} tokens", plan, H100_HOSTS, rate, "TFLOP/s", _rate)
    layout = ParallelLayout(2048, pipeline=16, expert=64)
    plan = TrainingPlan(
        shapes()["deepseek-v3"], GPUS["h800"], layout, 4096, 15360 // layout.data, 1, Schedule("dualpipe", 2),
        "zero-1", "fp8",
    )  # fmt: skip
    yield PublishedRun("DeepSeek-V3, 2048 GPUs", plan, H100_HOSTS, _DEEPSEEK_HOURS, "hours", _hours)


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per published run; ``settings`` change nothing."""
    runs = list(published_runs())
    progress.phase(f"{len(runs)} iterations", len(runs))
    rows = []
    for number, run in enumerate(runs, start=1):
        rows.append(_row(run))
        progress.advance_to(number)
    return rows


def _row(run: PublishedRun) -> PaperRow:
    found = iteration_alone(run.plan, run.cluster)
    value = run.measure(run.plan, found)
    error = value / run.published - 1
    here = {"value": value, "error": error, "mfu": found.mfu, "bubble": found.pipeline.bubble, "seconds": found.seconds}
    note = "" if abs(error) <= TOLERANCE else f"not within {TOLERANCE:.0%}"
    return PaperRow(f"{run.label} ({run.unit})", {"value": run.published}, here, note)


def _gpt(name: str, layers: int, hidden: int, heads: int, vocabulary: int) -> Transformer:
    sizes = (layers, hidden, heads, heads, hidden // heads, 4 * hidden, vocabulary)
    return Transformer(name, f"GPT {name}", *sizes, gated=False, tied=True, biases=True, positions=SEQUENCE)


def _with_recomputation(_plan: TrainingPlan, found: IterationAlone) -> float:
    """TFLOP/s of a GPU, its second forward pass included, as SC'21 counts."""
    return 4 / 3 * found.flops_per_gpu / 1e12


def _rate(_plan: TrainingPlan, found: IterationAlone) -> float:
    return found.flops_per_gpu / 1e12


def _seconds(_plan: TrainingPlan, found: IterationAlone) -> float:
    return found.seconds


def _hours(plan: TrainingPlan, found: IterationAlone) -> float:
    """GPU hours per trillion tokens."""
    return plan.layout.gpus * found.seconds / 3600 / (plan.batch * plan.sequence) * 1e12
