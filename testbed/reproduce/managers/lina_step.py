"""Lina's training step (ATC 2023), by the flow engine: gradients after, beside or below all-to-alls; micro-ops.

The baseline is DeepSpeed's way: gradients beside the all-to-alls of the backward pass, evenly. Lina puts all-to-alls
first, and cuts them and the compute of experts into micro-ops that overlap. The paper prints neither sizes nor
batches: the mixture is the catalogue's, on GPUs with NICs of 100 Gb/s, and what is not printed is swept: compute per
step, bits of a gradient, size of a micro-op. Nothing is fitted; the last row is the point of the sweep's line on which
1.73 comes out, with its inputs, or the largest factor there is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Final

from testbed.api import run_scenario
from testbed.progress import Progress
from testbed.reproduce.paper_experiment import PaperRow, Settings
from workloads.models.catalogue import CATALOGUE

SCENARIO: Final = "lina.yaml"
PAPER: Final = 1.73
MIXTURES: Final = tuple(name for name, model in CATALOGUE.items() if model.expert_share > 0)
"""The catalogue's mixtures of experts."""
PLACEMENTS: Final[Mapping[int, tuple[str, ...]]] = MappingProxyType(
    {
        gpus: tuple(f"h{host}g{gpu}" for host in range(min(4, gpus)) for gpu in range(max(1, gpus // 4)))
        for gpus in (2, 4, 8, 16)
    }
)
"""GPUs -> where they are: on up to four hosts, evenly."""
CHUNK: Final = "30MB"
"""Of a micro-op, from memory of the paper."""
COMPUTE: Final = (1.0, 0.5, 0.25, 0.125)
"""Compute of a step, in that of the catalogue."""
BITS: Final = (4, 16, 32)
CHUNKS: Final = ("30MB", "10MB", "3MB", "1MB")
FINEST: Final = "1MB"
_STEPS: Final = 8
_NIC_BITS_PER_S: Final = 100e9

Step = Callable[[str, Sequence[str]], float]
"""A scheduler and overrides of the scenario -> seconds of an iteration."""


def computed(scheduler: str, overrides: Sequence[str]) -> float:
    """Return the seconds of an iteration by the flow engine."""
    plain = ("checks=[]", "jobs.moe.jitter=0", "measure.iterations=3", "measure.warmup=1", f"schedulers=[{scheduler}]")
    with tempfile.TemporaryDirectory(prefix="lina-") as folder:
        made = run_scenario(SCENARIO, engine="flow", overrides=[*plain, *overrides], out=Path(folder))
    return float(made.summary["runs"][0]["jobs"][0]["iteration_s"]["mean"])


def reproduce(settings: Settings, progress: Progress, step: Step = computed) -> Sequence[PaperRow]:
    """Return rows by number of GPUs, by size of a micro-op, of the sweep, and at the point nearest to the paper."""
    rows: list[PaperRow] = []
    progress.phase("2 to 16 GPUs")
    for model in MIXTURES:
        for gpus, placement in PLACEMENTS.items():
            where = (f"jobs.moe.model={model}", f"jobs.moe.placement=[{', '.join(placement)}]")
            paper = {"faster": PAPER} if gpus == max(PLACEMENTS) else {}
            rows.append(PaperRow(f"{model}, {gpus} GPUs", paper, variants(step, where), _waits(CHUNK)))
    progress.phase("sizes of a micro-op")
    rows += [PaperRow(f"micro-ops of {chunk}", {}, variants(step, (), chunk=chunk), _waits(chunk)) for chunk in CHUNKS]
    progress.phase("sweep", len(COMPUTE) * len(BITS))
    swept: dict[tuple[float, int], float] = {}
    for compute in COMPUTE:
        for bits in BITS:
            here = variants(step, _with(compute), bits, FINEST)
            swept[compute, bits] = here["faster"]
            rows.append(PaperRow(f"compute x {compute:g}, {bits} bits", {}, here))
            progress.advance_to(len(swept))
    progress.phase("the point where the paper's factor comes out")
    return [*rows, nearest(step, swept)]


def variants(step: Step, overrides: Sequence[str], bits: int = 16, chunk: str = CHUNK) -> dict[str, float]:
    """Return the seconds of a step by each variant, and how much faster Lina's is than the baseline's."""
    beside = f"jobs.moe.gradients={{bits: {bits}, background: true}}"
    pieces = f"jobs.moe.experts={{popularity: [1], chunk: {chunk}}}"
    here = {
        "after_s": step("ecmp", (*overrides, f"jobs.moe.gradients={{bits: {bits}}}")),
        "evenly_s": step("ecmp", (*overrides, beside)),
        "first_s": step("lina", (*overrides, beside)),
        "pipelined_s": step("lina", (*overrides, beside, pieces)),
    }
    return here | {
        "faster": here["evenly_s"] / here["pipelined_s"],
        "faster_first": here["evenly_s"] / here["first_s"],
        "faster_than_after": here["after_s"] / here["pipelined_s"],
    }


def nearest(step: Step, swept: Mapping[tuple[float, int], float]) -> PaperRow:
    """Return the point at which the paper's factor comes out, on the line of compute where the sweep passes it.

    If it never does: the largest factor of the sweep.
    """
    for bits in BITS:
        line = [(compute, swept[compute, bits]) for compute in COMPUTE]
        for (more, before), (less, after) in pairwise(line):
            if min(before, after) <= PAPER <= max(before, after):
                return _between(step, bits, (more, before), (less, after))
    compute, bits = max(swept, key=swept.__getitem__)
    note = (
        f"the largest of the sweep: {swept[compute, bits]:.2f} x at {_inputs(compute, bits)}; 1.73 x does not come out"
    )
    return PaperRow("largest", {"faster": PAPER}, variants(step, _with(compute), bits, FINEST), note)


def _between(step: Step, bits: int, upper: tuple[float, float], lower: tuple[float, float]) -> PaperRow:
    (high, at_high), (low, at_low) = upper, lower
    rises = at_low > at_high  # with less compute
    for _ in range(_STEPS):
        middle = (high + low) / 2
        here = variants(step, _with(middle), bits, FINEST)
        if (here["faster"] < PAPER) == rises:
            high = middle
        else:
            low = middle
    return PaperRow("where 1.73 x comes out", {"faster": PAPER}, here, _inputs(middle, bits), fitted=("faster",))


def _with(compute: float) -> tuple[str, ...]:
    return (f"jobs.moe.compute={1000 * compute * CATALOGUE[MIXTURES[0]].compute_s:.6f}ms",)


def _inputs(compute: float, bits: int) -> str:
    seconds = compute * CATALOGUE[MIXTURES[0]].compute_s
    return (
        f"compute {seconds:.3f} s ({compute:.3g} of the catalogue's), gradients of {bits} bits, micro-ops of {FINEST}, "
        "16 GPUs behind 4 NICs of 100 Gb/s"
    )


def _waits(chunk: str) -> str:
    """How long an all-to-all waits for a micro-op of a gradient, which the flow engine does not count."""
    size = float(chunk.removesuffix("MB")) * 1e6
    return f"not counted: an all-to-all waits up to {1000 * 8 * size / _NIC_BITS_PER_S:.2g} ms for a gradient micro-op"
