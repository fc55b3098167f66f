"""Who has which GPU when: a row per GPU of the fabric, a bar per stint, a colour per job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.experiment.experiment import Experiment
from testbed.report.style import figure
from testbed.report.tables import marked
from testbed.results.record import ManagedRecord, RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_occupancy(record: RunRecord, managed: ManagedRecord, experiment: Experiment) -> Figure:
    """From the first to the last iteration of each stint."""
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
            for gpu in job.gpus:
                axes.barh(row[gpu], end - begin, 0.9, left=begin, color=colors(number % 20), linewidth=0)
            axes.text(begin, row[job.gpus[0]], f" {name}", va="center", fontsize=6, clip_on=True)
    per_host = max(1, len(gpus) // len(experiment.fabric.hosts))
    axes.set_yticks(range(0, len(gpus), per_host), [gpus[place] for place in range(0, len(gpus), per_host)], fontsize=7)
    axes.set_ylim(len(gpus) - 0.5, -0.5)
    axes.set_xlabel("s")
    name = marked(record.scheduler, record.fidelity.verdict)
    axes.set_title(f"{name}: who has which GPU", fontsize=10, loc="left")
    return plot


def _spans(record: RunRecord) -> dict[str, tuple[float, float]]:
    """Stint -> seconds of the run from its first iteration's begin to its last one's end."""
    found: dict[str, tuple[float, float]] = {}
    for row in record.iterations:
        begin, end = found.get(row.job, (row.start_s, row.end_s))
        found[row.job] = (min(begin, row.start_s), max(end, row.end_s))
    return found
