"""A synthetic trace in the likeness of Lingjun, the cluster that Crux (SIGCOMM'24) studied.

The rows of the real trace are public but do not come with this project. Drawn here from its published
statistics: sizes and statuses and model names by their counts, run times through their quantiles,
submissions over days and hours with bursts. Nothing is chosen by what a scheduler achieves on it.

The paper's "more than 5,000 jobs in two weeks" are the rows of the trace: 5,180, of which 2,816 have
GPUs. Only with these counts do its sizes and run times come near the concurrency of figure 5: 5,000 GPU jobs of such
run times are 33 at a time and hold 1,100 GPUs or more, where the figure's means are 12 and 678.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Final, TypeVar

from workloads.traces.gathering import NO_GPUS
from workloads.traces.job_failures import with_retries
from workloads.traces.trace import Trace, TraceJob

SIZES: Final[Mapping[int, int]] = {
    1: 277,
    2: 167,
    3: 19,
    4: 197,
    6: 34,
    8: 910,
    9: 5,
    12: 12,
    16: 209,
    24: 32,
    32: 434,
    48: 87,
    60: 47,
    64: 108,
    72: 21,
    80: 17,
    88: 21,
    128: 19,
    256: 144,
    400: 14,
    512: 23,
    744: 1,
}
"""GPUs -> jobs, of the published dataset; figure 4 shows the same steps."""

MINUTES: Final = ((0.0, 0.5), (0.25, 1.0), (0.5, 4.0), (0.75, 18.0), (0.9, 165.0), (0.95, 661.0), (0.99, 3288.0))
"""(share of jobs, run time at most), of the published dataset, except the first: half the resolution of a minute."""
LONGEST_MINUTES: Final = 20631.0
TAIL: Final = 2.05
"""Exponent of the Pareto tail above the 99 % quantile: it leaves one of the 4,327 jobs that ran at the longest time."""

MOST_GPU_HOURS: Final = 22007.0
"""The largest job of the published dataset; a run time that would make a larger one is drawn again."""

FATES: Final[Mapping[str, int]] = {"pass": 2242, "kill": 1634, "fail": 1295}
"""Jobs that succeeded, were stopped, and failed, of the published dataset."""

MODELS: Final[Mapping[str, int]] = {
    "": 2793,
    "cognitive": 1067,
    "llama": 266,
    "GPT-13b": 205,
    "ResNet": 118,
    "GPT-3b": 98,
    "rl": 93,
    "GPT-7b": 83,
    "preprocess": 66,
    "65b": 57,
    "mnist": 39,
    "GPT-13B": 33,
    "llama_30b": 32,
    "DLM": 30,
    "GPT": 28,
    "dota": 28,
    "multigen": 25,
    "sidecar": 25,
    "word_embedding": 22,
    "gpt": 18,
}
"""Model names by their counts, of the published dataset; drawn regardless of size, as no joint count is published."""

GPU_SHARE: Final = 2816 / 5180
"""Jobs with GPUs among all, of the published dataset."""

PEAK_JOBS: Final = 37 / 2000
PEAK_GPUS: Final = 1536 / 2000
"""Peaks of figure 5 per GPU of the cluster ("more than 2,000"). Submissions that would exceed one wait."""

HOURS: Final = (0.5,) * 8 + (1.0, 1.5, 2.0, 2.0, 1.5, 1.5, 2.0, 2.0, 2.0, 1.5) + (1.0,) * 4 + (0.7, 0.5)
"""Submissions by hour of the day: assumed, working hours."""
DAY_SHAPE: Final = 4.0
"""Shape of the gamma distribution of how busy a day is: assumed; days differ by a half of their mean."""
BURST: Final = 3.0
"""Mean number of jobs submitted together, a minute apart on average: assumed."""
RETRY_S: Final = 1800.0
"""Mean time after which a held back job is submitted again: assumed."""

ELASTIC_JOBS: Final = 0.05
"""Share of jobs that are elastic (Lyra, EuroSys 2023)."""
ELASTIC_GPU_TIME: Final = 0.36
"""Their share of the GPU time (Lyra: 36 % of the training resources)."""
_STEEPEST: Final = 4.0
_STEPS: Final = 40

DAY_S: Final = 86400.0
DID_NOT_FIT: Final = "held back past the end"


def lingjun_like(
    seed: int,
    gpus: int = 2000,
    jobs: int = 5000,
    days: float = 14,
    *,
    gpu_share: float = GPU_SHARE,
    keep_peaks: bool = True,
    elastic_jobs: float = 0.0,
    retries: int = 0,
) -> Trace:
    """Return ``jobs`` jobs submitted to a cluster of ``gpus`` GPUs in ``days`` days, those without GPUs as skipped.

    ``gpu_share`` of the jobs have GPUs; 1 makes every one a GPU job and about doubles the load. A
    job that would lift the running jobs or their GPUs above figure 5's peaks per GPU is held back,
    and counted if it is not submitted by the end; ``keep_peaks`` False submits all as they come.
    ``elastic_jobs``: share of the jobs that are elastic (Lyra: 0.05, with 36 % of the GPU time). ``retries``: how often
    a failed job is tried again, each time for its run time. Raises ``ValueError`` for numbers that make no trace.
    """
    _require(gpus, jobs, days, gpu_share)
    chance = random.Random(f"lingjun-like {seed}")
    wanted = round(jobs * gpu_share)
    drawn = [(time, _draw(chance, gpus)) for time in _submissions(chance, wanted, days)]
    held = _fitted(chance, drawn, gpus, days) if keep_peaks else drawn
    first = held[0][0]
    submitted = tuple(TraceJob(f"job-{index:05d}", time - first, *job) for index, (time, job) in enumerate(held))
    skipped = {NO_GPUS: jobs - wanted, DID_NOT_FIT: wanted - len(held)}
    drawn_trace = Trace(
        f"lingjun-like-{seed}",
        submitted,
        {reason: count for reason, count in skipped.items() if count},
        synthetic=True,
        notes=_notes(gpus, keep_peaks),
    )
    return with_retries(with_elastic_jobs(drawn_trace, seed, elastic_jobs, most=gpus), retries)


def _notes(gpus: int, keep_peaks: bool) -> tuple[str, ...]:
    drawn = "synthetic: drawn from Lingjun's published statistics, no row is real"
    if not keep_peaks:
        return (drawn,)
    peaks = f"never more than {PEAK_JOBS * gpus:.0f} jobs and {PEAK_GPUS * gpus:.0f} GPUs at a time"
    return drawn, f"{peaks}, if each starts at its submission"


T = TypeVar("T")
_Details = tuple[float, int, str, str, str, str]
"""Duration in s, GPUs, model, user, virtual cluster, fate."""


def _require(gpus: int, jobs: int, days: float, gpu_share: float) -> None:
    if round(PEAK_GPUS * gpus) < 1 or round(PEAK_JOBS * gpus) < 1:
        raise ValueError(f"gpus must be at least {math.ceil(0.5 / PEAK_JOBS)}, not {gpus}")
    if not (math.isfinite(days) and days > 0):
        raise ValueError(f"days must be above 0, not {days:g}")
    if not (0 < gpu_share <= 1 and round(jobs * gpu_share) >= 1):
        raise ValueError(f"jobs x gpu_share must give at least one GPU job, not {jobs} x {gpu_share:g}")


def _submissions(chance: random.Random, wanted: int, days: float) -> list[float]:
    """Times in s: bursts, thrown into the hours of busy and quiet days."""
    busy = [chance.gammavariate(DAY_SHAPE, 1 / DAY_SHAPE) for _ in range(math.ceil(days))]
    hours = math.ceil(days * 24)
    weights = list(accumulate(busy[hour // 24] * HOURS[hour % 24] for hour in range(hours)))
    times: list[float] = []
    while len(times) < wanted:
        time = (chance.choices(range(hours), cum_weights=weights)[0] + chance.random()) * 3600
        while len(times) < wanted:
            if time < days * DAY_S:
                times.append(time)
            if chance.random() < 1 / BURST:
                break
            time += chance.expovariate(1 / 60)
    return sorted(times)


def _draw(chance: random.Random, gpus: int) -> _Details:
    fitting = {size: count for size, count in SIZES.items() if size <= PEAK_GPUS * gpus}
    size = _one_of(chance, fitting)
    time = _run_time(chance.random())
    while size * time > MOST_GPU_HOURS * 3600:
        time = _run_time(chance.random())
    return time, size, _one_of(chance, MODELS), "", "", _one_of(chance, FATES)


def _one_of(chance: random.Random, counts: Mapping[T, int]) -> T:
    return chance.choices(list(counts), list(counts.values()))[0]


def _run_time(share: float) -> float:
    """Seconds at a share of the jobs: straight lines in log time between the quantiles, a bounded Pareto above."""
    for (below, shorter), (above, longer) in pairwise(MINUTES):
        if share < above:
            return 60 * shorter * math.pow(longer / shorter, (share - below) / (above - below))
    top, start = MINUTES[-1]
    rank = (share - top) / (1 - top)
    reach = 1 - (start / LONGEST_MINUTES) ** TAIL
    return 60 * start * math.pow(1 - rank * reach, -1 / TAIL)


def _fitted(
    chance: random.Random, drawn: list[tuple[float, _Details]], gpus: int, days: float
) -> list[tuple[float, _Details]]:
    """The submissions at times when they keep below the peaks; those held back come again until the end."""
    coming = [(time, number) for number, (time, _) in enumerate(drawn)]
    running: list[tuple[float, int]] = []
    free, room = round(PEAK_GPUS * gpus), round(PEAK_JOBS * gpus)
    held: list[tuple[float, _Details]] = []
    while coming:
        time, number = heapq.heappop(coming)
        details = drawn[number][1]
        while running and running[0][0] <= time:
            free += heapq.heappop(running)[1]
        if details[1] <= free and len(running) < room:
            free -= details[1]
            heapq.heappush(running, (time + details[0], details[1]))
            held.append((time, details))
        else:
            later = max(time, running[0][0]) + chance.expovariate(1 / RETRY_S)
            if later < days * DAY_S:
                heapq.heappush(coming, (later, number))
    return held


def with_elastic_jobs(
    trace: Trace, seed: int, jobs: float = ELASTIC_JOBS, gpu_time: float = ELASTIC_GPU_TIME, most: int | None = None
) -> Trace:
    """Return the trace with a share ``jobs`` of its jobs elastic, which have about the share ``gpu_time`` of GPU time.

    They take from half to twice the GPUs that they ask for, never more than ``most``. A job is drawn with a weight
    that is a power of its GPU time; the power is the one that comes closest to ``gpu_time``. Raises ``ValueError``
    for shares outside 0 to 1.
    """
    for name, share in (("jobs", jobs), ("gpu_time", gpu_time)):
        if not 0 <= share <= 1:
            raise ValueError(f"the share '{name}' of elastic jobs must be 0 to 1, not {share:g}")
    count = round(jobs * len(trace.jobs))
    if not count:
        return trace
    chance = random.Random(f"elastic {seed}")
    draws = [-math.log(1.0 - chance.random()) for _ in trace.jobs]
    chosen = _elastic_places(trace, draws, count, gpu_time)
    found = sum(trace.jobs[place].gpu_seconds for place in chosen) / sum(job.gpu_seconds for job in trace.jobs)
    note = f"elastic jobs are drawn: {count} jobs, {found:.0%} of the GPU time"
    changed = (_elastic(job, most) if place in chosen else job for place, job in enumerate(trace.jobs))
    return replace(trace, jobs=tuple(changed), notes=(*trace.notes, note))


def _elastic_places(trace: Trace, draws: list[float], count: int, gpu_time: float) -> set[int]:
    """Places of ``count`` jobs whose share of the GPU time is close to ``gpu_time``."""
    total = sum(job.gpu_seconds for job in trace.jobs)
    low, high = -_STEEPEST, _STEEPEST
    best, distance = set[int](), math.inf
    for _ in range(_STEPS):
        power = (low + high) / 2
        keys = [draw / job.gpu_seconds**power for draw, job in zip(draws, trace.jobs, strict=True)]
        chosen = set(sorted(range(len(keys)), key=keys.__getitem__)[:count])
        share = sum(trace.jobs[place].gpu_seconds for place in chosen) / total
        if abs(share - gpu_time) < distance:
            best, distance = chosen, abs(share - gpu_time)
        low, high = (power, high) if share < gpu_time else (low, power)
    return best


def _elastic(job: TraceJob, most: int | None) -> TraceJob:
    twice = 2 * job.gpus if most is None else max(job.gpus, min(2 * job.gpus, most))
    return replace(job, min_gpus=max(1, job.gpus // 2), max_gpus=twice)
