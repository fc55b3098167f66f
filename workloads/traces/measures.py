"""What figures 4 and 5 of Crux (SIGCOMM'24) show of a trace: job sizes, and how many jobs and GPUs run at a time.

Every job is taken to run from its submission for its duration, as if no job ever waited.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from workloads.traces.trace import Trace

Step = tuple[float, int, int]
"""From this time in seconds on: running jobs, GPUs that they hold."""


def concurrency(trace: Trace) -> tuple[Step, ...]:
    """Return (time in s, running jobs, their GPUs) wherever it changes, beginning at 0; a job that ends frees first."""
    changes: dict[float, list[int]] = {0.0: [0, 0]}
    for job in trace.jobs:
        for time, sign in ((job.submit_s, 1), (job.submit_s + job.duration_s, -1)):
            change = changes.setdefault(time, [0, 0])
            change[0] += sign
            change[1] += sign * job.gpus
    steps: list[Step] = []
    jobs = gpus = 0
    for time in sorted(changes):
        jobs, gpus = jobs + changes[time][0], gpus + changes[time][1]
        if not steps or steps[-1][1:] != (jobs, gpus):
            steps.append((time, jobs, gpus))
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Peaks, their times in s, and time means of figure 5."""

    peak_jobs: int
    peak_jobs_at_s: float
    peak_gpus: int
    peak_gpus_at_s: float
    mean_jobs: float
    mean_gpus: float


def concurrency_of(trace: Trace, until_s: float | None = None) -> Concurrency:
    """Return the numbers of figure 5 from 0 to ``until_s``, by default to the last end."""
    steps = concurrency(trace)
    end = steps[-1][0] if until_s is None else until_s
    if not end > 0:
        raise ValueError(f"trace {trace.name}: there is no time to take a mean over")
    inside = [step for step in steps if step[0] < end]
    ends = [*(step[0] for step in inside[1:]), end]
    spans = [after - step[0] for step, after in zip(inside, ends, strict=True)]
    most_jobs = max(inside, key=lambda step: step[1])
    most_gpus = max(inside, key=lambda step: step[2])
    return Concurrency(
        most_jobs[1],
        most_jobs[0],
        most_gpus[2],
        most_gpus[0],
        sum(span * step[1] for span, step in zip(spans, inside, strict=True)) / end,
        sum(span * step[2] for span, step in zip(spans, inside, strict=True)) / end,
    )


def size_steps(trace: Trace) -> tuple[tuple[int, float], ...]:
    """Return figure 4: (GPUs, share of jobs of at most as many), where it steps. Raises ``ValueError`` without jobs."""
    if not trace.jobs:
        raise ValueError(f"trace {trace.name} has no jobs")
    counts, below = Counter(job.gpus for job in trace.jobs), 0
    steps: list[tuple[int, float]] = []
    for gpus in sorted(counts):
        below += counts[gpus]
        steps.append((gpus, below / len(trace.jobs)))
    return tuple(steps)


def share_up_to(steps: Sequence[tuple[int, float]], gpus: float) -> float:
    """Return the share of jobs of at most ``gpus`` GPUs."""
    place = bisect_right([size for size, _ in steps], gpus)
    return steps[place - 1][1] if place else 0.0


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest of ``values`` that at least ``share`` of them do not exceed. Raises ``ValueError``."""
    if not values or not 0 <= share <= 1:
        raise ValueError(f"a quantile needs values and a share of 0 to 1, not {len(values)} values and {share:g}")
    return sorted(values)[max(0, math.ceil(share * len(values) - 1e-9) - 1)]
