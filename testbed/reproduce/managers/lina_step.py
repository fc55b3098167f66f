"""Lina's training step (ATC 2023), by the flow engine: gradients after, beside or below all-to-alls; micro-ops.

The baseline is DeepSpeed's way: gradients beside the all-to-alls of the backward pass, evenly. Lina puts all-to-alls
first, and cuts them and the compute of experts into micro-ops that overlap. The servers are those of ``lina.yaml``,
with NICs of 100 Gb/s. The paper prints neither sizes nor batches: the first rows are the catalogue's mixtures as they
are; then what is not printed is swept: compute, gradient, and the experts' share of the compute, against the same
all-to-alls. Nothing is fitted in those rows. The last two are the first points of the sweep's lines on which 1.73 comes
out, with their inputs, or the largest factor there is: against gradients beside the all-to-alls, and after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from types import MappingProxyType
from typing import Final

from testbed.api import prepare
from testbed.engines.flow.engine import FlowEngine
from testbed.experiment.experiment import Experiment
from testbed.progress import Progress
from testbed.reproduce.paper_experiment import PaperRow, Settings
from workloads.build import JobSpec, build_job_of
from workloads.communication.experts import Experts
from workloads.communication.gradients import Gradients
from workloads.models.catalogue import CATALOGUE
from workloads.models.model import Model

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
CHUNK: Final = 30e6
"""Bytes of a micro-op, from memory of the paper."""
CHUNKS: Final = (30e6, 10e6, 3e6, 1e6)
FINEST: Final = 1e6
COMPUTE: Final = (4.0, 2.0, 1.4, 1.2, 1.0, 0.7, 0.5)
GRADIENT: Final = (0.25, 1.0, 2.0, 4.0)
"""Compute and gradient of a step, in those of the catalogue, with the catalogue's all-to-alls."""
EXPERT_SHARES: Final = (0.67, 0.8, 0.9)
"""Of the compute, in place of the catalogue's. Feed-forward blocks in every layer have 2/3 of a layer's matrices; twice
as much compute, where a token visits two experts, 0.8."""
_STEPS: Final = 8
_NIC_BITS_PER_S: Final = 100e9


@dataclass(frozen=True, slots=True)
class Point:
    """Inputs of a step; ``compute`` and ``gradient`` in those of the catalogue.

    ``experts``: their share of the compute, all of it between the all-to-alls that bring tokens and take them back;
    None: as in the catalogue.
    """

    compute: float = 1.0
    gradient: float = 1.0
    experts: float | None = None
    chunk: float = FINEST

    def __str__(self) -> str:
        share = "" if self.experts is None else f", experts {self.experts:.2f} of it"
        return f"compute x {self.compute:.3g}{share}, gradient x {self.gradient:g}"

    def of(self, model: Model) -> Model:
        """Return ``model`` with these inputs."""
        phases = tuple(
            each if each.collective == "alltoall" else replace(each, bytes=self.gradient * each.bytes)
            for each in model.phases
        )
        flops = self.compute * model.flops_per_gpu
        if self.experts is None:
            return replace(model, flops_per_gpu=flops, phases=phases)
        own = sum(each.share for each in phases if each.returning)  # phases in which experts compute
        phases = tuple(
            replace(each, share=each.share * (self.experts / own if each.returning else (1 - self.experts) / (1 - own)))
            for each in phases
        )
        return replace(model, flops_per_gpu=flops, phases=phases, expert_share=self.experts)


Step = Callable[[Model, Sequence[str], str, Gradients, Experts | None], float]
"""Model, GPUs, scheduler, gradients and experts of a job -> seconds of an iteration."""


class Computed:
    """Steps by the flow engine, on the servers of ``lina.yaml``."""

    def __init__(self) -> None:
        self._experiments: dict[str, Experiment] = {}

    def __call__(
        self, model: Model, gpus: Sequence[str], scheduler: str, gradients: Gradients, experts: Experts | None
    ) -> float:
        """Return the seconds of an iteration."""
        where = self._experiments.get(scheduler) or self._experiments.setdefault(scheduler, _servers(scheduler))
        spec = JobSpec("moe", model.name, placement=tuple(gpus), gradients=gradients, experts=experts)
        job = build_job_of(model, spec, where.fabric)
        window = FlowEngine().run(replace(where, jobs=(job,)), Path(), lambda _message: None).windows[job.name]
        return (window.end_s - window.start_s) / where.measure.iterations


def _servers(scheduler: str) -> Experiment:
    plain = ("checks=[]", "jobs.moe.jitter=0", f"schedulers=[{scheduler}]")
    return prepare(SCENARIO, overrides=[*plain, "measure.iterations=3", "measure.warmup=1"]).experiments[0]


def reproduce(settings: Settings, progress: Progress, step: Step | None = None) -> Sequence[PaperRow]:
    """Return rows by number of GPUs, by size of a micro-op, of the sweep, and at the point where 1.73 comes out."""
    step = Computed() if step is None else step
    rows: list[PaperRow] = []
    progress.phase("2 to 16 GPUs")
    for name, (gpus, placement) in product(MIXTURES, PLACEMENTS.items()):
        paper = {"faster": PAPER} if gpus == max(PLACEMENTS) else {}
        here = variants(step, CATALOGUE[name], placement, CHUNK)
        rows.append(PaperRow(f"{name}, {gpus} GPUs", paper, here, _waits(CHUNK)))
    progress.phase("sizes of a micro-op")
    for chunk in CHUNKS:
        here = at(step, Point(chunk=chunk))
        rows.append(PaperRow(f"micro-ops of {chunk / 1e6:g} MB", {}, here, _waits(chunk)))
    progress.phase("sweep")
    swept = {point: at(step, point) for line in lines() for point in line}
    rows += [PaperRow(str(point), {}, here) for point, here in swept.items()]
    progress.phase("the point where the paper's factor comes out")
    return [*rows, *(nearest(step, swept, key) for key in ("faster", "faster_than_after"))]


def lines() -> Iterator[list[Point]]:
    """Yield the lines of the sweep: compute falls along each, and the rest stays."""
    for share, gradient in product((None, *EXPERT_SHARES), GRADIENT):
        yield [Point(compute, gradient, share) for compute in COMPUTE]


def at(step: Step, point: Point) -> dict[str, float]:
    """Return the variants of a step of the first mixture on all GPUs, with these inputs."""
    return variants(step, point.of(CATALOGUE[MIXTURES[0]]), PLACEMENTS[max(PLACEMENTS)], point.chunk)


def variants(step: Step, model: Model, gpus: Sequence[str], chunk: float) -> dict[str, float]:
    """Return the seconds of a step by each variant, and how much faster Lina's is than the baseline's."""
    beside, pieces = Gradients(background=True), Experts((1.0,), chunk=chunk)
    here = {
        "after_s": step(model, gpus, "ecmp", Gradients(), None),
        "evenly_s": step(model, gpus, "ecmp", beside, None),
        "first_s": step(model, gpus, "lina", beside, None),
        "pipelined_s": step(model, gpus, "lina", beside, pieces),
    }
    return here | {
        "faster": here["evenly_s"] / here["pipelined_s"],
        "faster_first": here["evenly_s"] / here["first_s"],
        "faster_than_after": here["after_s"] / here["pipelined_s"],
    }


AGAINST: Final = MappingProxyType({"faster": "beside", "faster_than_after": "after"})


def nearest(step: Step, swept: Mapping[Point, Mapping[str, float]], key: str) -> PaperRow:
    """Return the point at which the factor ``key`` is the paper's, on the first line of the sweep that passes it.

    If none does: the largest factor of the sweep.
    """
    factors = {point: here[key] for point, here in swept.items()}
    for line in lines():
        for one, other in pairwise(line):
            if min(factors[one], factors[other]) <= PAPER <= max(factors[one], factors[other]):
                return _between(step, one, other, key, rises=factors[other] > factors[one])
    best = max(factors, key=factors.__getitem__)
    label = f"largest, against gradients {AGAINST[key]}"
    return PaperRow(label, {key: PAPER}, swept[best], f"1.73 x does not come out; the largest at {best}")


def _between(step: Step, one: Point, other: Point, key: str, rises: bool) -> PaperRow:
    """Bisection between two points of a line; ``rises``: the factor, from ``one`` to ``other``."""
    for _ in range(_STEPS):
        middle = replace(one, compute=(one.compute + other.compute) / 2)
        here = at(step, middle)
        one, other = (middle, other) if (here[key] < PAPER) == rises else (one, middle)
    model = middle.of(CATALOGUE[MIXTURES[0]])
    exchange = max(each.bytes for each in model.phases if each.collective == "alltoall")
    inputs = (
        f"{middle}: {model.compute_s:.3f} s of compute, four all-to-alls of {exchange / 1e6:.0f} MB per GPU, "
        f"{model.phases[-1].bytes / 1e6:.0f} MB of gradients, micro-ops of {middle.chunk / 1e6:g} MB"
    )
    basis = "compute: to the paper's factor of a step, 1.73"
    label = f"1.73 x, against gradients {AGAINST[key]}"
    return PaperRow(label, {key: PAPER}, here, inputs, fitted=(key,), calibrated_on=basis)


def _waits(chunk: float) -> str:
    """How long an all-to-all waits for a micro-op of a gradient, which the flow engine does not count."""
    waits_s = 8 * chunk / _NIC_BITS_PER_S
    return f"not counted: an all-to-all waits up to {1000 * waits_s:.2g} ms for a gradient micro-op"
