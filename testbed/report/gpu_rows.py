"""The GPU timeline: a row per GPU, its jobs' GPUs together, a few iterations of the measured window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from testbed.report.style import CAUSE_COLORS, figure
from testbed.report.tables import marked
from testbed.results.chrome_trace import natural, slices
from testbed.results.record import RunRecord
from workloads.job import Job

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ITERATIONS_SHOWN: Final = 5
WORDS: Final = {"compute": "compute", "straggler": "waiting for a peer", "exposed": "exposed communication"}


def draw_gpus(record: RunRecord, jobs: Sequence[Job]) -> Figure:
    """The figure; rows are ordered by job, then by GPU."""
    gpus = [(job, gpu) for job in jobs for gpu in sorted(job.gpus, key=natural)]
    place = {(job.name, gpu): row for row, (job, gpu) in enumerate(gpus)}
    start, end = shown(record)
    plot = figure(10.0, 1.3 + max(1.2, 0.065 * len(gpus)))
    axes = plot.add_subplot()
    for cause, bars in _bars(record, place, start, end).items():
        _fill(axes, bars, cause)
    _job_labels(axes, jobs)
    axes.set_xlim(start, end)
    axes.set_ylim(len(gpus), 0)
    axes.set_facecolor("#f4f4f4")
    axes.set_xlabel("time, s")
    name = marked(record.scheduler, record.fidelity.verdict)
    axes.set_title(f"{name}: {len(gpus)} GPUs, a row each", loc="left", fontsize=10)
    axes.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    return plot


def shown(record: RunRecord) -> tuple[float, float]:
    """The stretch of time that is drawn: some iterations of the slowest job, from where measuring began."""
    start = max((window.start_s for window in record.windows.values()), default=0.0)
    end = max((window.end_s for window in record.windows.values()), default=record.duration_s)
    longest = max((row.end_s - row.start_s for row in record.iterations if not row.disturbed), default=1.0)
    return start, max(start + 1e-6, min(end, start + ITERATIONS_SHOWN * longest))


def _bars(
    record: RunRecord, place: dict[tuple[str, str], int], start: float, end: float
) -> dict[str, list[tuple[int, float, float]]]:
    bars: dict[str, list[tuple[int, float, float]]] = {cause: [] for cause in WORDS}
    for row in record.iterations:
        if row.end_s > start and row.start_s < end and (row.job, row.gpu) in place:
            for cause, begin, duration in slices(row):
                bars[cause].append((place[row.job, row.gpu], begin, duration))
    return bars


def _fill(axes: Axes, bars: Sequence[tuple[int, float, float]], cause: str) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    # One path for all bars of a cause: a tenth of the size of a path each.
    corners = np.array(
        [
            ((begin, row + 0.06), (begin + width, row + 0.06), (begin + width, row + 0.94), (begin, row + 0.94))
            for row, begin, width in bars
        ]
    ).reshape(-1, 4, 2)
    path = Path.make_compound_path_from_polys(corners)
    axes.add_patch(PathPatch(path, facecolor=CAUSE_COLORS[cause], linewidth=0, label=WORDS[cause]))


def _job_labels(axes: Axes, jobs: Sequence[Job]) -> None:
    top, ticks = 0, []
    for job in jobs:
        bottom = top + len(job.gpus)
        axes.axhline(bottom, color="white", linewidth=2)
        ticks.append(((top + bottom) / 2, f"{job.name} ({len(job.gpus)})"))
        top = bottom
    axes.set_yticks([place for place, _ in ticks], [name for _, name in ticks], fontsize=9)
    axes.tick_params(axis="y", length=0)
