"""An iteration as other tools describe it: compute, and collectives of groups of ranks.

Ranks are numbered as in Megatron and SimAI: neighbours form a tensor-parallel group, then come the expert-parallel, the
data-parallel and the pipeline-parallel dimension. Sizes are those of :mod:`workloads.communication.collectives`: of an
allreduce, reduce-scatter or all-gather the whole buffer, of an all-to-all what a rank hands in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal, get_args

from topologies.units import format_time
from workloads.training.layout import ParallelLayout

CollectiveKind = Literal["allreduce", "reduce-scatter", "all-gather", "alltoall", "broadcast", "point-to-point"]
GroupKind = Literal["tensor", "expert", "data", "data-expert", "pipeline", "all"]
"""Which ranks take part: ``data-expert`` are those of the data-parallel dimension that hold the same experts."""

GROUPS: Final[tuple[GroupKind, ...]] = get_args(GroupKind)
BACKGROUND_PARTS: Final = 4


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How the ranks of a job are divided: ``gpus`` = tensor x data x pipeline, and ``expert`` divides data."""

    gpus: int
    tensor: int = 1
    expert: int = 1
    pipeline: int = 1

    def __post_init__(self) -> None:
        for name in ("gpus", "tensor", "expert", "pipeline"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least 1")
        if self.gpus % (self.tensor * self.pipeline):
            what = f"{self.gpus} GPUs with tensor size {self.tensor} and pipeline size {self.pipeline}"
            raise ValueError(f"{what}, expected a multiple of {self.tensor * self.pipeline} GPUs")
        if self.data % self.expert:
            raise ValueError(f"expert size {self.expert} with data size {self.data}, expected a divisor of it")

    @property
    def data(self) -> int:
        """Ranks of a data-parallel group."""
        return self.gpus // (self.tensor * self.pipeline)

    def size(self, group: GroupKind) -> int:
        """Ranks of a group of this kind."""
        sizes = {
            "tensor": self.tensor,
            "expert": self.expert,
            "data": self.data,
            "data-expert": self.data // self.expert,
            "pipeline": self.pipeline,
            "all": self.gpus,
        }
        return sizes[group]

    def groups(self, group: GroupKind) -> tuple[tuple[int, ...], ...]:
        """Return every group of this kind as its ranks, in order."""
        if group == "all":
            return (tuple(range(self.gpus)),)
        layout = ParallelLayout(self.gpus, self.tensor, self.pipeline, expert=self.expert)
        return tuple(sorted(layout.groups("expert-gradient" if group == "data-expert" else group)))


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of every group of a kind at once; ``bytes`` is S per rank."""

    kind: CollectiveKind
    group: GroupKind
    bytes: float
    background: bool = False
    """Whether only the end of the iteration waits for it."""
    returning: bool = False
    """Whether its messages go the other way: gradients from a pipeline stage to the one before."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Compute, then a collective; it may start when the last ``beside_s`` of the compute are left."""

    compute_s: float
    """Seconds on each GPU."""
    collective: Collective | None = None
    """None for compute alone."""
    beside_s: float = 0.0
    """How much of the compute may go on beside the collective."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the communication of a file an iteration here has: operators, and their seconds as recorded."""

    kept: int
    left_out: int
    kept_s: float = 0.0
    left_out_s: float = 0.0

    @property
    def share_left_out(self) -> float:
        """0 to 1: of the recorded seconds; of the operators where no seconds are recorded."""
        whole_s = self.kept_s + self.left_out_s
        if whole_s > 0.0:
            return self.left_out_s / whole_s
        return self.left_out / (self.kept + self.left_out) if self.left_out else 0.0

    @property
    def said(self) -> str:
        """What is left out, in words; empty for nothing."""
        if not self.left_out:
            return ""
        whole, whole_s = self.kept + self.left_out, self.kept_s + self.left_out_s
        of = (
            f"{format_time(self.left_out_s)} of {format_time(whole_s)}"
            if whole_s > 0
            else f"{self.left_out} of {whole}"
        )
        return f"{100 * self.share_left_out:.3g} % of its communication ({of}, {self.left_out} operators)"


@dataclass(frozen=True, slots=True)
class ImportedWorkload:
    """An iteration read from a file."""

    form: str
    """``simai``, ``chakra`` or ``kineto``."""
    source: str
    """The file or folder."""
    parallelism: Parallelism
    stretches: tuple[Stretch, ...]
    """In order."""
    left_out: tuple[str, ...] = ()
    """What the file says and an iteration here cannot, and why."""
    notes: tuple[str, ...] = ()
    """What is worth knowing of the import."""
    coverage: Coverage = Coverage(0, 0)
    """How much of the file's communication it has."""

    @property
    def said_left_out(self) -> tuple[str, ...]:
        """What is left out, a line each, the share of the communication first; none if nothing is."""
        share = f"{self.source} leaves out {self.coverage.said}" if self.coverage.said else ""
        return (*([share] if share else []), *(f"{self.source} leaves out {line}" for line in self.left_out))

    @property
    def compute_s(self) -> float:
        """Compute of an iteration on one GPU."""
        return sum(stretch.compute_s for stretch in self.stretches)

    @property
    def collectives(self) -> Iterator[Collective]:
        """Those of an iteration, in order."""
        return (stretch.collective for stretch in self.stretches if stretch.collective is not None)


def totals(workload: ImportedWorkload) -> dict[tuple[CollectiveKind, GroupKind], tuple[int, float]]:
    """Return (kind, group) -> how many collectives of an iteration, and their bytes."""
    found: dict[tuple[CollectiveKind, GroupKind], tuple[int, float]] = {}
    for each in workload.collectives:
        count, size = found.get((each.kind, each.group), (0, 0.0))
        found[each.kind, each.group] = count + 1, size + each.bytes
    return found


def joined(stretches: Iterable[Stretch], silent: Mapping[GroupKind, bool]) -> tuple[Stretch, ...]:
    """Return the same iteration with compute alone, and collectives of ``silent`` groups, added to what comes next.

    A silent group sends nothing and takes no time: all its ranks are on one host.
    """
    found: list[Stretch] = []
    before_s = 0.0
    for stretch in stretches:
        if stretch.collective is None or silent[stretch.collective.group]:
            before_s += stretch.compute_s
        else:
            found.append(replace(stretch, compute_s=stretch.compute_s + before_s))
            before_s = 0.0
    return (*found, Stretch(before_s)) if before_s > 0 or not found else tuple(found)


def condensed(stretches: tuple[Stretch, ...], most: int) -> tuple[Stretch, ...]:
    """Return about ``most`` stretches at most: neighbours as one, all compute first and then each kind of collective.

    Compute, and bytes by kind and group, stay what they are but for the order of sums.
    """
    found = _few_in_background(stretches)
    if len(found) <= most:
        return found
    kinds = len({replace(each.collective, bytes=0.0) for each in found if each.collective is not None})
    parts = max(1, most // max(1, kinds))
    bounds = [part * len(found) // parts for part in range(parts + 1)]
    return _few_in_background(tuple(one for low, high in pairwise(bounds) for one in _one(found[low:high])))


def _one(stretches: tuple[Stretch, ...]) -> Iterator[Stretch]:
    compute_s, beside_s = sum(each.compute_s for each in stretches), sum(each.beside_s for each in stretches)
    sizes: dict[Collective, float] = {}
    for stretch in stretches:
        if stretch.collective is not None:
            alike = replace(stretch.collective, bytes=0.0)
            sizes[alike] = sizes.get(alike, 0.0) + stretch.collective.bytes
    if not sizes:
        yield Stretch(compute_s)
    for collective, size in sizes.items():
        yield Stretch(compute_s, replace(collective, bytes=size), beside_s)
        compute_s = beside_s = 0.0


def _few_in_background(stretches: tuple[Stretch, ...]) -> tuple[Stretch, ...]:
    """The same with at most :data:`BACKGROUND_PARTS` background collectives of a kind and group.

    Each has connections of its own. Those that become one begin when the last of them may.
    """
    places: dict[Collective, list[int]] = {}
    for place, stretch in enumerate(stretches):
        if stretch.collective is not None and stretch.collective.background:
            places.setdefault(replace(stretch.collective, bytes=0.0), []).append(place)
    found = list(stretches)
    for alike, those in places.items():
        parts = min(len(those), BACKGROUND_PARTS)
        bounds = [part * len(those) // parts for part in range(parts + 1)]
        for low, high in pairwise(bounds):
            size = sum(each.bytes for place in those[low:high] if (each := found[place].collective) is not None)
            for place in those[low : high - 1]:
                found[place] = Stretch(found[place].compute_s)
            last = those[high - 1]
            found[last] = replace(found[last], collective=replace(alike, bytes=size))
    return tuple(found)
