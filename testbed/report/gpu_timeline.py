"""GPUs over time, a row each: what they do in a few iterations, and which job holds them under a manager."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from testbed.experiment.experiment import Experiment
from testbed.report.style import CAUSE_COLORS, figure
from testbed.report.tables import marked
from testbed.results.chrome_trace import natural, slices
from testbed.results.record import ManagedRecord, RunRecord
from workloads.job import Job

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ITERATIONS_SHOWN: Final = 5
ROWS_SHOWN: Final = 256
"""Of more GPUs every n-th is drawn: drawing thousands takes long, and nobody sees them apart."""
WORDS: Final = {"compute": "compute", "straggler": "waiting for a peer", "exposed": "exposed communication"}


def draw_gpus(record: RunRecord, jobs: Sequence[Job]) -> Figure:
    """Return the figure: rows ordered by job, then by GPU."""
    every = [(job, gpu) for job in jobs for gpu in sorted(job.gpus, key=natural)]
    step = -(-len(every) // ROWS_SHOWN) or 1
    gpus = every[::step]
    place = {(job.name, gpu): row for row, (job, gpu) in enumerate(gpus)}
    start, end = shown(record)
    plot = figure(10.0, 1.3 + max(1.2, 0.065 * len(gpus)))
    axes = plot.add_subplot()
    for cause, bars in _bars(record, place, start, end).items():
        _fill(axes, bars, cause)
    _job_labels(axes, gpus)
    axes.set_xlim(start, end)
    axes.set_ylim(len(gpus), 0)
    axes.set_facecolor("#f4f4f4")
    axes.set_xlabel("time, s")
    name = marked(record.scheduler, record.fidelity.verdict)
    which = f"every {step}th of " if step > 1 else ""
    axes.set_title(f"{name}: {which}{len(every)} GPUs, a row each", loc="left", fontsize=10)
    axes.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    return plot


def draw_occupancy(record: RunRecord, managed: ManagedRecord, experiment: Experiment) -> Figure:
    """Return the figure: a bar from the first to the last iteration of each stint."""
    import matplotlib

    gpus = experiment.fabric.gpus
    row = {gpu: number for number, gpu in enumerate(gpus)}
    plot = figure(9.0, 1.2 + 0.09 * len(gpus))
    axes = plot.add_subplot()
    colors = matplotlib.colormaps["tab20"]
    spans = _spans(record)
    for number, (name, stints) in enumerate(managed.stints_of.items()):
        for job in (job for job in managed.stints if job.name in stints and job.name in spans):
            begin, end = spans[job.name]
            held = [row[gpu] for gpu in job.gpus if gpu in row]
            for place in held:
                axes.barh(place, end - begin, 0.9, left=begin, color=colors(number % 20), linewidth=0)
            if held:
                axes.text(begin, held[0], f" {name}", va="center", fontsize=6, clip_on=True)
    per_host = max(1, len(gpus) // max(1, len(experiment.fabric.hosts)))
    axes.set_yticks(range(0, len(gpus), per_host), [gpus[place] for place in range(0, len(gpus), per_host)], fontsize=7)
    axes.set_ylim(len(gpus) - 0.5, -0.5)
    axes.set_xlabel("s")
    name = marked(record.scheduler, record.fidelity.verdict)
    axes.set_title(f"{name}: which job holds which GPU", fontsize=10, loc="left")
    return plot


def shown(record: RunRecord) -> tuple[float, float]:
    """The time span that is drawn: some iterations of the slowest job, from the start of the measured window."""
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


def _job_labels(axes: Axes, rows: Sequence[tuple[Job, str]]) -> None:
    top, ticks = 0, []
    for _, group in groupby(rows, key=lambda row: row[0].name):
        drawn = [job for job, _ in group]
        job, bottom = drawn[0], top + len(drawn)
        axes.axhline(bottom, color="white", linewidth=2)
        ticks.append(((top + bottom) / 2, f"{job.name} ({len(job.gpus)})"))
        top = bottom
    axes.set_yticks([place for place, _ in ticks], [name for _, name in ticks], fontsize=9)
    axes.tick_params(axis="y", length=0)


def _spans(record: RunRecord) -> dict[str, tuple[float, float]]:
    """Stint -> seconds of the run from its first iteration's begin to its last one's end."""
    found: dict[str, tuple[float, float]] = {}
    for row in record.iterations:
        begin, end = found.get(row.job, (row.start_s, row.end_s))
        found[row.job] = (min(begin, row.start_s), max(end, row.end_s))
    return found
