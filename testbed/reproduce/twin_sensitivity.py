"""How much the flow engine's own answer hinges on when jobs start.

Jobs that share links at one level settle into one of several rhythms. Which one may depend on some milliseconds at
the start: then a single answer of either engine is one of several, and a difference between two proves little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from testbed.engines.common.isolated_runs import isolates_jobs
from testbed.experiment.experiment import Experiment, Scale
from testbed.reproduce.flow_entries import Entry, flow_entry, twin_experiment
from testbed.reproduce.kept_runs import Task

MOVED_S: Final = 0.02
"""Seconds by which a start is moved at most: what packets in flight move a burst by, a window."""
DRAWS: Final = 6


def moved_starts(task: Task, scale: Scale) -> list[Entry]:
    """Return the flow engine's entries of ``task``, each with the start of every job moved by its own draw.

    Packets are those of ``scale``. None where no start can be moved: under a manager, or if every job runs alone.
    """
    experiment = twin_experiment(task, scale)
    if experiment.managed is not None or isolates_jobs(experiment):
        return []
    draws = np.random.default_rng(task.seed).uniform(0.0, MOVED_S, (DRAWS, len(experiment.jobs)))
    return [_computed(experiment, [float(moved) for moved in draw]) for draw in draws]


def largest_range(entries: Sequence[Entry]) -> float:
    """Return how far the longest and the shortest mean iteration of a job are apart, over the shortest, at most."""
    times: dict[str, list[float]] = {}
    for job in (job for entry in entries for job in entry["jobs"] if job["iteration_s"]["mean"]):
        times.setdefault(job["name"], []).append(job["iteration_s"]["mean"])
    return max((max(each) / min(each) - 1 for each in times.values()), default=0.0)


def _computed(experiment: Experiment, moved: Sequence[float]) -> Entry:
    jobs = tuple(replace(job, start_s=job.start_s + by) for job, by in zip(experiment.jobs, moved, strict=True))
    return flow_entry(replace(experiment, jobs=jobs))
