"""Jitter and stragglers: how long one GPU really computes, the same for every caller.

Standard library only: the worker process imports this and must start fast.
"""

from __future__ import annotations

import random
from typing import Final

from workloads.job import Job

CUT: Final = 3.0
"""Standard deviations at which compute times are cut off, on both sides, so that the mean stays."""


def compute_time(job: Job, gpu: str, iteration: int, phase_index: int, seed: int) -> float:
    """Return the seconds GPU ``gpu`` computes in a phase of an iteration.

    A normal variable around the phase's compute with ``job.jitter`` as relative deviation, cut off at
    three deviations, times the GPU's straggler factors. Fixed by (seed, ``job.draws`` of the GPU, iteration, phase).
    Raises ``IndexError`` for a phase the job lacks.
    """
    mean = job.phases[phase_index].compute_s * straggler_factor(job, gpu)
    if job.jitter <= 0 or mean <= 0:
        return mean
    place = job.gpus.index(gpu)
    draw = random.Random(f"{seed}|{job.draws[place] if job.draws else place}|{iteration}|{phase_index}")
    deviation = draw.gauss(0.0, 1.0)
    while abs(deviation) > CUT:
        deviation = draw.gauss(0.0, 1.0)
    return mean * max(0.0, 1 + job.jitter * deviation)


def straggler_factor(job: Job, gpu: str) -> float:
    """How many times as long ``gpu`` computes; 1 for a GPU that is no straggler."""
    factor = 1.0
    for straggler in job.stragglers:
        if straggler.gpu == gpu:
            factor *= straggler.factor
    return factor
