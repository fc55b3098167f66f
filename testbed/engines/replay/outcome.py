"""The outcome of a replay: GPUs over time, jobs one by one, links by class, metrics of the manager."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from testbed.engines.replay.work import Work
from testbed.fluid.maxmin import Floats
from testbed.metrics.managers.manager_metrics import outcome_metrics
from workloads.managers.account import JobOutcome


class Series:
    """Averages over bins of equal length of values that change in steps."""

    def __init__(self, bin_s: float, columns: tuple[str, ...]) -> None:
        self.bin_s = bin_s
        self.columns = columns
        self._sums: list[Floats] = []

    def add(self, from_s: float, to_s: float, values: Iterable[float]) -> None:
        """Add ``values``, one for each column, that held from ``from_s`` to ``to_s``."""
        held = np.fromiter(values, float, len(self.columns))
        place = int(from_s // self.bin_s)
        while from_s < to_s:
            end = min(to_s, (place + 1) * self.bin_s)
            while len(self._sums) <= place:
                self._sums.append(np.zeros(len(self.columns)))
            self._sums[place] += (end - from_s) * held
            from_s, place = end, place + 1

    def means(self) -> Floats:
        """[bins, columns]; the last bin as if the values had been 0 after the end."""
        return np.array(self._sums).reshape(len(self._sums), len(self.columns)) / self.bin_s


def refusals(refused: Mapping[str, str]) -> str:
    """Say in one line how many jobs could never start, with the reason of the first; empty for none."""
    return f"jobs that could never start: {len(refused)}; {next(iter(refused.values()))}" if refused else ""


@dataclass
class Totals:
    """GPU-seconds of a replay, how many sets of rates it settled, and what it took."""

    allocated: float = 0.0
    busy: float = 0.0
    settled: int = 0
    work: Work = field(default_factory=Work)


@dataclass(frozen=True)
class Replayed:
    """The outcome of a replay of ``span_s`` seconds on ``gpus`` GPUs.

    ``notes``: a line about refused jobs; one per mechanism of the manager for which the trace has no input, and per
    input that no mechanism uses; one that names the jobs that hold some of their GPUs at the end. ``refused``: jobs
    that could never start, each with the reason.
    """

    scheduler: str
    gpus: int
    span_s: float
    totals: Totals
    jobs: tuple[JobOutcome, ...]
    series: Series
    waiting: int = 0
    running: int = 0
    notes: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def gpu_utilization(self) -> float:
        """Compute-busy time of allocated GPUs over the time they were allocated."""
        return self.totals.busy / self.totals.allocated if self.totals.allocated > 0 else 0.0

    @property
    def busy_share(self) -> float:
        """Compute-busy time over the time of all GPUs of the cluster."""
        return self.totals.busy / (self.gpus * self.span_s) if self.span_s > 0 else 0.0

    @property
    def time_mean(self) -> float:
        """Mean over time of busy / allocated GPUs, bins without an allocated GPU left out."""
        means = self.series.means()
        allocated, busy = means[:, self.series.columns.index("allocated")], means[:, self.series.columns.index("busy")]
        there = allocated > 0
        return float(np.mean(busy[there] / allocated[there])) if there.any() else 0.0


def manager_metrics(done: Replayed) -> dict[str, float]:
    """Return name -> value: :func:`~testbed.metrics.managers.manager_metrics.outcome_metrics`, and two of the cluster.

    ``effective``: compute time over allocated time. ``allocated``: allocated time over that of all GPUs.
    """
    return {
        **outcome_metrics(done.jobs),
        "effective": done.gpu_utilization,
        "allocated": done.totals.allocated / (done.gpus * done.span_s) if done.span_s > 0 else 0.0,
    }
