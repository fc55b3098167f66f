"""Every manager under every scheduler: the replays, and a heat map of the utilisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from testbed.progress import Progress
from testbed.report.style import figure
from testbed.reproduce.kept_replays import cell, results, trace_note, trace_of
from testbed.reproduce.managers.manager_experiments import SCHEDULERS
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.plot_files import write_plot
from workloads.managers.catalogue import MANAGERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = (
    "jct_mean_s",
    "jct_p50_s",
    "jct_p95_s",
    "jct_p99_s",
    "queue_mean_s",
    "queue_p95_s",
    "makespan_s",
    "preemptions",
    "migrations",
    "preempted_share",
    "unfairness",
    "allocated",
)


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per manager; a synthetic trace unless ``settings.trace`` names one. Draws a heat map."""
    return managers_by_schedulers(settings, progress, tuple(MANAGERS), SCHEDULERS)


def managers_by_schedulers(
    settings: Settings, progress: Progress, managers: Sequence[str], schedulers: Sequence[str]
) -> Sequence[PaperRow]:
    """A row per manager: utilisation under each scheduler, and the manager's metrics under the last."""
    cells = {
        (m, s): replace(cell(settings, "clos", s, m), reference=True, elastic=True)
        for m in managers
        for s in schedulers
    }
    found = results(list(cells.values()), settings, progress)
    note = trace_note(trace_of(next(iter(cells.values()))))
    rows: list[PaperRow] = []
    for name in managers:
        last = found[cells[name, schedulers[-1]]]
        here = {each: float(found[cells[name, each]]["gpu_utilization"]) for each in schedulers}
        here |= {key: float(last["manager"][key]) for key in _SHOWN}
        here |= {key: float(last[key]) for key in ("finished", "running", "waiting")}
        rows.append(PaperRow(name, {}, here, "; ".join((*([] if rows else [note]), *last["notes"]))))
    write_plot(lambda: heat_map(rows, schedulers), settings.out, "managers-x-schedulers")
    return rows


def heat_map(rows: Sequence[PaperRow], schedulers: Sequence[str]) -> Figure:
    """Utilisation by manager (down) and scheduler (across), in %."""
    plot = figure(1.1 * len(schedulers) + 2.0, 0.36 * len(rows) + 1.2)
    axes = plot.add_subplot()
    values = 100 * np.array([[row.here[name] for name in schedulers] for row in rows])
    image = axes.imshow(values, cmap="viridis", aspect="auto", vmin=float(values.min()), vmax=float(values.max()))
    axes.set_xticks(range(len(schedulers)), schedulers, fontsize=8)
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
    middle = (values.min() + values.max()) / 2
    for place, value in np.ndenumerate(values):
        colour = "white" if value < middle else "black"
        axes.text(place[1], place[0], f"{value:.1f}", ha="center", va="center", fontsize=7, color=colour)
    plot.colorbar(image, label="GPU utilisation, %")
    return plot
