"""What Pollux measured of an application: seconds of a step by placement, and iterations by batch.

A folder has ``placements.csv`` (steps on up to four servers of 4 GPUs; ``placement`` 112: one, one and two GPUs),
``scalability.csv`` (steps on more), and a ``validation-BATCH.csv`` per batch, with a line per epoch of training. What
lies between measurements is interpolated: first over the local batch, then over GPUs per server, then over servers.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from math import ceil, nan
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from topologies.limits import COUNT
from topologies.table import Row, TraceError, read_rows

SERVER_GPUS: Final = 4
LOCAL_BATCH_LIMITS: Final[Mapping[str, int]] = MappingProxyType({"yolov3": 8})
"""The largest local batch that the authors' simulator lets an application have, where it is not the largest
measured."""

Curve = npt.NDArray[np.float64]
"""Shape (measurements, 3): local batch, seconds of a step, seconds of its synchronisation; local batches rise."""
_ROUNDING: Final = 1e-8
_PLACEMENT: Final = re.compile("[1-9]{1,64}")
_BATCH: Final = re.compile("[1-9][0-9]{0,14}")
_GRADIENTS: Final = (1e-100, 1e100)
"""Of norms of gradients that are not 0: sums and ratios of such numbers are numbers too."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """Training with one batch, by epoch: progress and iterations until its end, squared norm and variance of the
    gradient."""

    progress: tuple[float, ...]
    counted: tuple[float, ...]
    norm: tuple[float, ...]
    variance: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Measurements:
    """An application; seconds are those of its authors' GPUs."""

    name: str
    placements: Mapping[tuple[int, ...], Curve] = field(repr=False)
    """GPUs of each server, the smallest rotation -> steps."""
    scale: Mapping[int, Mapping[int, Curve]] = field(repr=False)
    """Servers -> GPUs -> steps, the mean over placements."""
    training: Mapping[int, Epochs] = field(repr=False)
    """Batch -> epochs."""
    local_batches: tuple[int, int]
    """The smallest and the largest local batch."""

    @property
    def batches(self) -> tuple[int, int]:
        """The smallest and the largest batch."""
        return min(self.training), max(self.training)

    def most_gpus(self, batch: int) -> int:
        """GPUs among which ``batch`` can be divided."""
        return max(1, batch // self.local_batches[0])

    def divides(self, gpus: int, batch: int) -> bool:
        """Whether each of ``gpus`` GPUs gets a sample or more in each step of a ``batch``."""
        return self._steps(gpus, batch)[0] >= 1

    def packed_s(self, gpus: int, batch: int) -> float:
        """Seconds of an iteration on as few servers as possible."""
        return self.iteration_s(packed(gpus), batch)

    def epochs_s(self, placement: Sequence[int], batch: int) -> tuple[float, ...]:
        """Seconds of each epoch of training. It ends at a whole second, as in the authors' simulator."""
        return self._epochs_s(_rotated(placement), batch)

    @cache  # noqa: B019 - measurements live as long as the program
    def _epochs_s(self, placement: tuple[int, ...], batch: int) -> tuple[float, ...]:
        each, more = self._steps(sum(placement), batch)
        iteration_s = self.iteration_s(placement, batch)
        taken = each * (more + 1) * sum(placement)
        return tuple(float(round(count * iteration_s)) for count in self.iterations(taken))

    def iteration_s(self, placement: Sequence[int], batch: int) -> float:
        """Seconds of an iteration of ``batch`` samples on so many GPUs of each server.

        A batch too large for the GPUs is computed in several steps, of which only the last synchronises.
        """
        each, more = self._steps(sum(placement), batch)
        step_s, sync_s = _step(self, _rotated(placement), each)
        return step_s + more * (step_s - sync_s)

    def _steps(self, gpus: int, batch: int) -> tuple[int, int]:
        """Samples of a step on one GPU, and how many steps more than one an iteration has."""
        local = ceil(batch / gpus - _ROUNDING)
        more = ceil(local / self.local_batches[1] - _ROUNDING) - 1
        if gpus == 1 and batch > self.batches[0]:
            more = max(1, more)
        each = ceil(local / (more + 1) - _ROUNDING)
        return min(each, self.batches[1] // (gpus * (more + 1))), more

    @cache  # noqa: B019 - measurements live as long as the program
    def iterations(self, batch: int) -> tuple[float, ...]:
        """Iterations of ``batch`` samples in each epoch: statistical progress over its gain."""
        epochs = min(len(each.progress) for each in self.training.values())
        progress = [min(each.progress[epoch] for each in self.training.values()) for epoch in range(epochs)]
        return tuple(
            (after - before) / self._gain(batch, epoch)
            for epoch, (before, after) in enumerate(pairwise([0.0, *progress]))
        )

    def told_iterations(self, batch: int, epoch: int) -> float:
        """Iterations that the Optimus of the authors is told are left in ``epoch`` (from 0): those of later epochs.

        They are those counted in training with ``batch``; 1 in the last epoch.
        """
        known = sorted(self.training)
        ends = [
            float(np.interp(batch, known, [self.training[each].counted[place] for each in known]))
            for place in (min(epoch, len(self.iterations(batch)) - 1), len(self.iterations(batch)) - 1)
        ]
        return max(1.0, ends[1] - ends[0])

    def _gain(self, batch: int, epoch: int) -> float:
        """Progress of an iteration, in iterations of the smallest batch."""
        known = sorted(self.training)
        norm = float(np.interp(batch, known, [self.training[each].norm[epoch] for each in known]))
        variance = float(np.interp(batch, known, [self.training[each].variance[epoch] for each in known]))
        return (variance + norm) / (variance * self.batches[0] / batch + norm)


def packed(gpus: int) -> tuple[int, ...]:
    """Return how many of ``gpus`` GPUs each server has if they are as few as can be."""
    whole, rest = divmod(gpus, SERVER_GPUS)
    return (SERVER_GPUS,) * whole + (rest,) * bool(rest)


@lru_cache(maxsize=100_000)
def _step(application: Measurements, placement: tuple[int, ...], local: int) -> tuple[float, float]:
    """Seconds of a step, and of its synchronisation."""
    curve = application.placements.get(placement)
    if curve is not None:
        return _at(curve, local)
    servers, gpus = len(placement), sum(placement)
    known = sorted(application.scale)
    density = gpus / servers
    points = [_at_density(application.scale[each], density * each, local) for each in known]
    step_s, sync_s = (float(np.interp(servers, known, [point[place] for point in points])) for place in (0, 1))
    return step_s, sync_s


def _at_density(by_gpus: Mapping[int, Curve], gpus: float, local: int) -> tuple[float, float]:
    known = sorted(by_gpus)
    points = [_at(by_gpus[each], local) for each in known]
    step_s, sync_s = (float(np.interp(gpus, known, [point[place] for point in points])) for place in (0, 1))
    return step_s, sync_s


def _at(curve: Curve, local: int) -> tuple[float, float]:
    return float(np.interp(local, curve[:, 0], curve[:, 1])), float(np.interp(local, curve[:, 0], curve[:, 2]))


def _rotated(placement: Sequence[int]) -> tuple[int, ...]:
    """The smallest rotation: the same ring."""
    held = tuple(count for count in placement if count)
    return min(held[place:] + held[:place] for place in range(len(held)))


@cache
def measurements(folder: Path) -> Measurements:
    """Read the folder of an application; :class:`TraceError` with file and line for what is wrong."""
    skipped: Counter[str] = Counter()
    by_placement: dict[tuple[int, ...], list[list[float]]] = defaultdict(list)
    by_scale: dict[tuple[int, int], list[list[float]]] = defaultdict(list)
    for row in read_rows(folder / "placements.csv", ("placement", "local_bsz", "step_time", "sync_time"), skipped):
        placement = _placement(row)
        by_placement[_rotated(placement)].append(_measured(row))
        by_scale[len(placement), sum(placement)].append(_measured(row))
    several = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
    for row in read_rows(folder / "scalability.csv", several, skipped):
        servers, gpus = row.count("num_nodes"), row.count("num_replicas")
        if not servers or not gpus:
            row.fail("num_nodes or num_replicas is missing", "both, above 0")
        by_scale[servers, gpus].append(_measured(row))
    scale: dict[int, dict[int, Curve]] = defaultdict(dict)
    for (servers, gpus), points in by_scale.items():
        scale[servers][gpus] = _curve(points)
    locals_ = [int(point[0]) for points in by_placement.values() for point in points]
    if not locals_:
        raise TraceError(str(folder / "placements.csv"), None, "there are no measurements", "steps by placement")
    most = LOCAL_BATCH_LIMITS.get(folder.name, max(locals_))
    placements = {placement: _curve(points) for placement, points in by_placement.items()}
    return Measurements(folder.name, placements, scale, _training(folder), (min(locals_), most))


def _placement(row: Row) -> tuple[int, ...]:
    said = row.text("placement")
    if not _PLACEMENT.fullmatch(said):
        row.fail(f"placement is {said!r}", "a digit per server, its GPUs, such as 112")
    return tuple(map(int, said))


def _measured(row: Row) -> list[float]:
    values = [row.number(name) for name in ("local_bsz", "step_time", "sync_time")]
    local, step_s, sync_s = values
    if local is None or sync_s is None or not local or not step_s:
        row.fail("local_bsz, step_time or sync_time is missing", "all three")
    if not 1 <= local <= COUNT:
        row.fail(f"local_bsz is {row.text('local_bsz')}", f"1 to {COUNT}")
    if sync_s > step_s:
        row.fail(f"sync_time is {sync_s:g}", f"at most the step_time, {step_s:g}")
    return [local, step_s, sync_s]


def _curve(points: Sequence[Sequence[float]]) -> Curve:
    """Sorted by local batch; equal ones are averaged."""
    by_local: dict[float, list[Sequence[float]]] = defaultdict(list)
    for point in points:
        by_local[point[0]].append(point)
    return np.array([np.mean(by_local[local], axis=0) for local in sorted(by_local)], dtype=np.float64)


def _training(folder: Path) -> Mapping[int, Epochs]:
    training: dict[int, Epochs] = {}
    for file in sorted(folder.glob("validation-*.csv")):
        batch = file.stem.removeprefix("validation-")
        if not _BATCH.fullmatch(batch):
            raise TraceError(str(file), None, f"{batch!r} is no batch", "a name such as validation-128.csv")
        training[int(batch)] = _epochs(file)
    if not training:
        raise TraceError(str(folder), None, "no batch is measured", "files such as validation-128.csv")
    return training


def _epochs(file: Path) -> Epochs:
    """The lines of a file, in which progress and iterations do not fall."""
    rows: list[tuple[float, float, float, float]] = []
    before = (0.0, 0.0)
    for row in read_rows(file, ("progress", "iteration", "grad_sqr", "grad_var"), Counter()):
        counted = _counted(row, "progress", before[0]), _counted(row, "iteration", before[1])
        norm, variance = _gradient(row, "grad_sqr"), _gradient(row, "grad_var")
        if not norm and not variance:
            row.fail("grad_sqr and grad_var are both 0", "one of them above 0")
        rows.append((*counted, norm, variance))
        before = counted
    if not rows:
        raise TraceError(str(file), None, "there are no epochs", "a line per epoch")
    return Epochs(*(tuple(values) for values in zip(*rows, strict=True)))


def _counted(row: Row, name: str, before: float) -> float:
    """A number of at least that of the epoch ``before``."""
    value = row.number(name)
    if value is None:
        row.fail(f"{name} is {row.text(name)!r}", "a number of at least 0")
    if value < before:
        row.fail(f"{name} is {row.text(name)}", f"at least {before:g}, that of the epoch before")
    return value


def _gradient(row: Row, name: str) -> float:
    """A norm of gradients: 0, or a number that is larger or smaller than any time or count may be."""
    try:
        value = float(row.text(name))
    except ValueError:
        value = nan
    if not (value == 0 or _GRADIENTS[0] <= value <= _GRADIENTS[1]):
        row.fail(f"{name} is {row.text(name)!r}", f"a number of at least 0: 0, or {_GRADIENTS[0]} to {_GRADIENTS[1]}")
    return value
