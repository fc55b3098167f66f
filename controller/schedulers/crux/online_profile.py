"""The online profile of Crux (section 5): W_j, t_j and the iteration from what workers measured.

The paper says what is measured and leaves open how GPU load becomes FLOPs, which transfers of
a job add up, and which peak of the spectrum is the iteration. Each function documents the choice
made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from controller.decision import Measured
from controller.schedulers.crux.intensity import Profile

SIGNIFICANT: Final = 0.2
"""A peak of the spectrum counts from this share of the largest amplitude: side lobes of the Hann window have 0.03."""
FEWEST_ITERATIONS: Final = 4
"""Iterations that a series must cover for the spectrum to tell one from two."""
_PADDING: Final = 8
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reported:
    """What a worker reports of one communication phase of an iteration; times in seconds of the run.

    ``ready_s``: it may send. ``communication_end_s``: all is sent and received. ``busy_s``: per GPU of
    the worker, seconds of compute that belong to this phase.
    """

    worker: str
    iteration: int
    ready_s: float
    communication_end_s: float
    busy_s: tuple[float, ...]
    phase: int = 0


def unknown_profile(declared: Profile, sent_bytes: float) -> Profile:
    """Return what is known of a job that is being profiled: its bytes and links, as if it sent all the time.

    Its intensity is 0, so that it chooses its paths after all others.
    """
    transfer_s = declared.communication_s
    traffic = sent_bytes / transfer_s if transfer_s > 0 else 0.0
    return Profile(declared.job, 0.0, transfer_s, 0.0, 0.0, transfer_s, traffic)


def measured_by_workers(
    reports: Sequence[Reported], busy_flops: float, series: Sequence[float], bin_s: float
) -> Measured:
    """Return the profile of one job.

    ``busy_flops``: FLOP/s of one GPU while it is busy. ``series``: bytes that the job sent in successive
    bins of ``bin_s`` seconds. Raises ``ValueError`` without reports, or for a series without a period.
    """
    return Measured(
        flops=work_per_iteration(reports, busy_flops),
        communication_s=communication_per_iteration(reports),
        iteration_s=iteration_length(series, bin_s, _mean_iteration(reports)),
    )


def work_per_iteration(reports: Sequence[Reported], busy_flops: float) -> float:
    """Return W_j in FLOP: busy seconds of all GPUs x ``busy_flops`` / iterations."""
    busy_s = sum(sum(report.busy_s) for report in reports)
    return busy_s * busy_flops / _iterations(reports)


def communication_per_iteration(reports: Sequence[Reported]) -> float:
    """Return t_j in s: durations of the job's transfers / iterations.

    The workers of a job send at the same time, so a phase lasts from when the last of them is ready to
    when the last is through; waiting for a slow peer is not communication.
    """
    ready: dict[tuple[int, int], float] = {}
    end: dict[tuple[int, int], float] = {}
    for report in reports:
        key = (report.iteration, report.phase)
        ready[key] = max(ready.get(key, report.ready_s), report.ready_s)
        end[key] = max(end.get(key, report.communication_end_s), report.communication_end_s)
    return sum(max(0.0, end[key] - ready[key]) for key in ready) / _iterations(reports)


def _iterations(reports: Iterable[Reported]) -> int:
    count = len({report.iteration for report in reports})
    if count == 0:
        raise ValueError("a profile needs at least one reported iteration")
    return count


def _mean_iteration(reports: Sequence[Reported]) -> float | None:
    """Seconds from one iteration's first phase to the next one's, over all workers; None if there is only one."""
    ready: dict[tuple[str, int], float] = {}
    for report in reports:
        key = (report.worker, report.iteration)
        ready[key] = min(ready.get(key, report.ready_s), report.ready_s)
    first, last = min(iteration for _, iteration in ready), max(iteration for _, iteration in ready)
    spans = [
        ready[worker, last] - at for (worker, iteration), at in ready.items() if iteration == first and last > first
    ]
    return sum(spans) / len(spans) / (last - first) if spans else None


def iteration_length(series: Sequence[float], bin_s: float, about_s: float | None = None) -> float:
    """Return the iteration in s from bytes per bin, by Fourier transform.

    Mean removed, Hann window, zeros appended. Bursts that repeat have peaks at the iteration's
    frequency and its multiples; of these the first counts: from the lowest frequency up, the
    first peak of at least :data:`SIGNIFICANT` of the largest, or a larger one less than half an octave
    above it, which jitter had split. Its place between the bins is that of a parabola through the
    logarithms of its three highest points. At least :data:`FEWEST_ITERATIONS` iterations must be
    covered. Equal bursts at equal distances look like one iteration each: nothing in the series tells them apart, and
    bursts that are nearly so have a first peak that is too low to count. Where workers tell that an iteration takes
    ``about_s``, so many periods make one as come nearest to that.

    Raises ``ValueError`` for a series that is too short or does not repeat.
    """
    values: _Floats = np.asarray(series, float)
    if bin_s <= 0 or len(values) < 2 * FEWEST_ITERATIONS:
        raise ValueError(f"a series needs bins longer than 0 s and at least {2 * FEWEST_ITERATIONS} of them")
    padded = _PADDING * 2 ** int(np.ceil(np.log2(len(values))))
    amplitude: _Floats = np.abs(np.fft.rfft((values - values.mean()) * np.hanning(len(values)), padded))
    lowest = int(np.ceil((FEWEST_ITERATIONS - 1) * padded / len(values)))
    inner = amplitude[1:-1]
    peaks = np.flatnonzero((inner > amplitude[:-2]) & (inner >= amplitude[2:])) + 1
    peaks = peaks[peaks >= lowest]
    if not len(peaks) or amplitude[peaks].max() <= 1e-9 * max(1.0, float(np.abs(values).sum())):
        raise ValueError(f"the series does not repeat {FEWEST_ITERATIONS} times")
    first = peaks[amplitude[peaks] >= SIGNIFICANT * amplitude[peaks].max()][0]
    near = peaks[(peaks >= first) & (peaks < first * np.sqrt(2))]
    best = int(near[amplitude[near].argmax()])
    period = float(padded * bin_s / (best + _between(amplitude[best - 1 : best + 2])))
    return period if about_s is None else period * max(1, round(about_s / period))


def _between(around: _Floats) -> float:
    """Where the top of a parabola through the logarithms of three values lies, in bins from the middle one."""
    left, middle, right = np.log(np.maximum(around, 1e-300))
    bend = left - 2 * middle + right
    return float(0.5 * (left - right) / bend) if bend < 0 else 0.0
