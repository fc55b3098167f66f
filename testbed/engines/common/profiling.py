"""The profile of a running job from what its workers reported, in the scenario's units. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Final

import numpy as np
import numpy.typing as npt

from controller.decision import Measured
from controller.schedulers.crux.online_profile import (
    Reported,
    communication_per_iteration,
    iteration_length,
    work_per_iteration,
)
from testbed.engines.common.iterations import HostIteration, numbered
from testbed.experiment.experiment import Experiment
from workloads.analysis import isolated
from workloads.job import Job

ITERATIONS: Final = 6
"""Successive iterations a profile is taken over, never the first: its hosts did not start from the same state."""
PATIENCE: Final = 2
"""After so many times these, the last ones are taken although something disturbed them."""
BINS_PER_ITERATION: Final = 32
RECENT: Final = 4
"""Iterations that recent throughput looks back on."""


def profile_window(completed: int, disturbed: Set[int]) -> int | None:
    """Return the first of the iterations to take a profile over, of a job that has made ``completed``; None to wait.

    They are the first in a row without any of ``disturbed``.
    """
    last = completed - ITERATIONS
    for first in range(1, last + 1):
        if disturbed.isdisjoint(range(first, first + ITERATIONS)):
            return first
    return last if completed > PATIENCE * ITERATIONS else None


def disturbed_iterations(
    job: Job, reports: Sequence[HostIteration], spans: Sequence[tuple[float, float]]
) -> frozenset[int]:
    """Return the iterations of ``job`` into which one of ``spans`` falls on some host."""
    return frozenset(
        report.iteration
        for report in reports
        if report.job == job.name
        and any(report.phases[0].start < end and start < report.phases[-1].end for start, end in spans)
    )


def measure_profile(job: Job, reports: Sequence[HostIteration], dilation: float, first: int = 1) -> Measured:
    """Return W_j, t_j and the iteration of ``job`` from its hosts' reports of whole iterations from ``first`` on.

    GPU load becomes FLOPs by the rate at which the job's GPUs work while busy. Where the communication has
    no period (it never pauses), the iteration is the mean of those reported.
    """
    used = [report for report in reports if report.job == job.name and 0 <= report.iteration - first < ITERATIONS]
    reported = [item for report in used for item in _reported(report, dilation)]
    busy_flops = job.flops / (len(job.gpus) * job.compute_s) if job.compute_s > 0 else 0.0
    mean = _mean_iteration(used, dilation)
    try:
        length = iteration_length(*_series(job, used, dilation, mean / BINS_PER_ITERATION), about_s=mean)
    except ValueError:
        length = mean
    return Measured(work_per_iteration(reported, busy_flops), communication_per_iteration(reported), length)


def recent_throughput(
    began: Mapping[str, tuple[Job, float]], reports: Sequence[HostIteration], experiment: Experiment, now: float
) -> dict[str, float]:
    """Return job -> iterations per second over its last :data:`RECENT` ones / those it would make alone.

    ``began``: name -> job, and when it began, on the clock of ``reports`` and ``now``. The iteration that it is in
    counts as soon as it lasts so long that the mean is above that of the others even if it ended now: a job that ends
    none has lost more with every second. One that has ended none, and could not have alone, is left out.
    """
    shares: dict[str, float] = {}
    for name, (job, since) in began.items():
        used = [report for report in reports if report.job == name]
        last = max((report.iteration for report in used), default=0)
        recent = [report for report in used if report.iteration > last - RECENT]
        since = min((report.phases[0].start for report in recent), default=since)
        so_far_s = (now - since) / experiment.scale.time / (len({report.iteration for report in recent}) + 1)
        alone_s = isolated(job, experiment.fabric).iteration_s
        if recent:
            shares[name] = alone_s / max(_mean_iteration(recent, experiment.scale.time), so_far_s)
        elif so_far_s > alone_s:
            shares[name] = alone_s / so_far_s
    return shares


def _reported(report: HostIteration, dilation: float) -> list[Reported]:
    return [
        Reported(
            worker=report.host,
            iteration=report.iteration,
            ready_s=phase.ready / dilation,
            communication_end_s=phase.communication_end / dilation,
            busy_s=tuple(busy / dilation for busy in phase.compute),
            phase=number,
        )
        for number, phase in numbered(report.phases)
    ]


def _mean_iteration(reports: Sequence[HostIteration], dilation: float) -> float:
    begin = min(report.phases[0].start for report in reports)
    end = max(report.phases[-1].end for report in reports)
    return (end - begin) / dilation / len({report.iteration for report in reports})


def _series(job: Job, reports: Sequence[HostIteration], dilation: float, bin_s: float) -> tuple[list[float], float]:
    """Bytes of ``job`` in successive bins of ``bin_s``: those of a phase spread evenly over its communication."""
    sizes = [sum(transfer.bytes for transfer in phase.transfers) for phase in job.phases]
    one_each = {report.host: report for report in reports}.values()
    hosts = Counter(number for report in one_each for number, _ in numbered(report.phases))
    spans = [
        (phase.ready / dilation, phase.communication_end / dilation, sizes[number] / hosts[number])
        for report in reports
        for number, phase in numbered(report.phases)
    ]
    begin = min(report.phases[0].start for report in reports) / dilation
    end = max(report.phases[-1].end for report in reports) / dilation
    edges: npt.NDArray[np.float64] = np.arange(begin, end + bin_s, bin_s)
    sent = np.zeros(len(edges))
    for start, stop, size in spans:
        if stop > start:
            sent += size * np.clip((edges - start) / (stop - start), 0.0, 1.0)
    return np.diff(sent).tolist(), bin_s
