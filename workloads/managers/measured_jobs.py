"""What a manager measures of running jobs: how fast they are on their GPUs, and their losses.

A step is measured in seconds of work, those that a job needs on the GPUs it asks for: two of them a second is twice
that speed. Only stretches without a pause count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from workloads.managers.jobs import Running, Waiting

MOST_LOSSES: Final = 64
"""Losses that are kept of a job; of more every second one goes."""


@dataclass(frozen=True, slots=True)
class _Mark:
    since_s: float
    time_s: float
    left_s: float


class MeasuredJobs:
    """Keeps when each job was last seen, and how much of it was left then."""

    def __init__(self) -> None:
        self._marks: dict[str, _Mark] = {}

    def measured(
        self, running: Mapping[str, Running], now_s: float, remaining: Callable[[str], float | None]
    ) -> dict[str, Waiting]:
        """Return name -> the job with what is known of it now, for those of which there is something new."""
        found: dict[str, Waiting] = {}
        marks: dict[str, _Mark] = {}
        for name, each in running.items():
            left_s, before = remaining(name), self._marks.get(name)
            if left_s is None or each.job.left_s is None or left_s >= each.job.left_s:
                continue  # it has not computed yet
            marks[name] = _Mark(each.since_s, now_s, left_s)
            if before is None or before.since_s != each.since_s or before.left_s <= left_s or each.share_gpus_with:
                continue
            taken_s = (now_s - before.time_s) / (before.left_s - left_s)
            found[name] = _with_loss(_with_step(each.job, len(each.gpus), taken_s), left_s)
        self._marks = marks
        return found


def _with_step(job: Waiting, gpus: int, taken_s: float) -> Waiting:
    return replace(job, measured_s=tuple(sorted({**dict(job.measured_s), gpus: taken_s}.items())))


def _with_loss(job: Waiting, left_s: float) -> Waiting:
    """The job with its loss now, if it has a curve of losses."""
    if job.loss_of is None or job.duration_s is None:
        return job
    done_s = job.duration_s - left_s
    if job.losses and done_s <= job.losses[-1][0]:
        return job
    kept = job.losses if len(job.losses) < MOST_LOSSES else job.losses[::2]
    return replace(job, losses=(*kept, (done_s, job.loss_of(done_s))))
