"""What every GPU did over time, as the page draws it: a lane per job (or stint) and GPU. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from testbed.experiment.experiment import Experiment
from testbed.report.page.encoding import f32, u32
from testbed.results.chrome_trace import natural
from testbed.results.record import IterationRow, RunRecord
from workloads.job import Job

MAX_ROWS: Final = 120_000
"""Iterations of GPUs on the page, of all runs together: 24 bytes each."""


def gpu_rows(experiment: Experiment, managed: bool) -> list[tuple[str, str]]:
    """(job, GPU) of each row from top to bottom; under a manager every GPU of the fabric, its job empty."""
    if managed:
        return [("", gpu) for gpu in experiment.fabric.gpus]
    return [(job.name, gpu) for job in experiment.jobs for gpu in sorted(job.gpus, key=natural)]


def timeline_view(
    record: RunRecord, stints: Sequence[Job], job_of: Sequence[int], rows: Sequence[tuple[str, str]], limit: int
) -> dict[str, Any]:
    """JSON-ready: ``lanes`` [[job, row, iterations]], then the iterations of all lanes, one after the other, by column.

    Columns: ``iteration``, ``disturbed``; ``start``, ``compute``, ``straggler``, ``exposed``, ``end`` in seconds.
    At most ``limit`` iterations: later ones are left out, ``until_s`` says from when (None: all are there).
    """
    place = {key: number for number, key in enumerate(rows)}
    until = _until(record.iterations, limit)
    by_lane = _by_lane(record.iterations, until)
    lanes, kept = [], []
    for job, shown in zip(stints, job_of, strict=True):
        for gpu in sorted(job.gpus, key=natural):
            row = place.get((job.name, gpu), place.get(("", gpu)))
            found = by_lane.get((job.name, gpu))
            if row is not None and found:
                lanes.append([shown, row, len(found)])
                kept += found
    return {"lanes": lanes, "until_s": until, **_columns(kept)}


def _columns(rows: Sequence[IterationRow]) -> Mapping[str, Any]:
    return {
        "iteration": u32([row.iteration for row in rows]),
        "disturbed": u32([row.disturbed for row in rows]) if any(row.disturbed for row in rows) else None,
        "start": f32([row.start_s for row in rows]),
        "compute": f32([row.compute_s for row in rows]),
        "straggler": f32([row.straggler_s for row in rows]),
        "exposed": f32([row.exposed_s for row in rows]),
        "end": f32([row.end_s for row in rows]),
    }


def _by_lane(rows: Sequence[IterationRow], until: float | None) -> dict[tuple[str, str], list[IterationRow]]:
    lanes: dict[tuple[str, str], list[IterationRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.start_s):
        if until is None or row.start_s < until:
            lanes[row.job, row.gpu].append(row)
    return lanes


def _until(rows: Sequence[IterationRow], limit: int) -> float | None:
    if len(rows) <= limit:
        return None
    return sorted(row.start_s for row in rows)[limit]
