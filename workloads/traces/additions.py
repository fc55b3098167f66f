"""What public traces do not record, drawn for any trace: elastic jobs, and attempts of jobs that fail.

Both draws depend only on the seed and the jobs, and each adds a note to the trace that says what was drawn.
"""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Final

from workloads.traces.trace import Trace, TraceJob

ELASTIC_JOBS: Final = 0.05
"""Share of jobs that are elastic (Lyra, EuroSys 2023)."""
ELASTIC_GPU_TIME: Final = 0.36
"""Their share of the GPU time (Lyra: 36 % of the training resources)."""
_STEEPEST: Final = 4.0
_STEPS: Final = 40


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
    chance = Random(f"elastic {seed}")
    draws = [-math.log(1.0 - chance.random()) for _ in trace.jobs]
    chosen = _drawn(trace, draws, count, gpu_time)
    found = sum(trace.jobs[place].gpu_seconds for place in chosen) / sum(job.gpu_seconds for job in trace.jobs)
    note = f"elastic jobs are drawn: {count} jobs, {found:.0%} of the GPU time"
    changed = (_elastic(job, most) if place in chosen else job for place, job in enumerate(trace.jobs))
    return replace(trace, jobs=tuple(changed), notes=(*trace.notes, note))


def with_retries(trace: Trace, retries: int) -> Trace:
    """Return the trace with ``retries`` more attempts for each failed job that has one: it fails the same way again.

    Each attempt is as long as the job in ``trace`` (Philly: most failures are user errors, which repeat).
    """
    if retries < 0:
        raise ValueError(f"retries must be 0 or more, not {retries}")
    if not retries:
        return trace
    changed = tuple(
        replace(job, attempts=1 + retries, duration_s=job.duration_s * (1 + retries))
        if job.fate == "fail" and job.attempts == 1
        else job
        for job in trace.jobs
    )
    return replace(trace, jobs=changed, notes=(*trace.notes, f"each failed job is tried {1 + retries} times: assumed"))


def _drawn(trace: Trace, draws: list[float], count: int, gpu_time: float) -> set[int]:
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
