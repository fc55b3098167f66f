"""The two plots of figure 24: utilisation over time, and the load of each class of links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from testbed.engines.replay.traffic import LINK_CLASSES
from testbed.report.style import figure
from testbed.reproduce.kept_replays import DAY_S, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SMOOTH_BINS: Final = 18
"""Three hours: finer detail would not show on a curve of two weeks."""


def over_time(curves: Mapping[str, Result]) -> Figure:
    """Busy / allocated GPUs of every scheduler over the days."""
    plot = figure(7.2, 3.6)
    axes = plot.add_subplot()
    for scheduler, result in curves.items():
        table = _table(result)
        allocated = _smoothed(table[:, result["columns"].index("allocated")])
        busy = _smoothed(table[:, result["columns"].index("busy")])
        days = np.arange(len(busy)) * result["bin_s"] / DAY_S
        axes.plot(days, 100 * np.divide(busy, allocated, out=np.zeros_like(busy), where=allocated > 0), label=scheduler)
    axes.set_xlabel("days")
    axes.set_ylabel("GPU utilisation, %")
    axes.set_ylim(0, 100)
    axes.legend(frameon=False, fontsize=8, ncols=3)
    return plot


def link_classes(curves: Mapping[str, Result]) -> Figure:
    """A row per scheduler, a column per class of links: how many are busy over the days, shaded by GPU intensity."""
    plot = figure(7.2, 1.2 * len(curves) + 0.8)
    grid = plot.subplots(len(curves), len(LINK_CLASSES), sharex=True, sharey="col", squeeze=False)
    highest = max(float(np.max(_intensities(result, kind))) for result in curves.values() for kind in LINK_CLASSES)
    for line, (scheduler, result) in zip(grid, curves.items(), strict=True):
        for axes, kind in zip(line, LINK_CLASSES, strict=True):
            load = _smoothed(_table(result)[:, result["columns"].index(f"load {kind}")])
            shade = _intensities(result, kind) / highest if highest > 0 else np.zeros(len(load))
            days = np.arange(len(load)) * result["bin_s"] / DAY_S
            axes.bar(days, load, width=result["bin_s"] / DAY_S, color=[(0.0, 0.2, 0.5, 0.15 + 0.85 * s) for s in shade])
        line[0].set_ylabel(scheduler, fontsize=7)
    for axes, kind in zip(grid[0], LINK_CLASSES, strict=True):
        axes.set_title(f"{kind}: links in use", fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("days", fontsize=8)
    return plot


def _table(result: Result) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array(result["series"], float).reshape(len(result["series"]), len(result["columns"]))


def _smoothed(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    window = min(_SMOOTH_BINS, len(values))
    return np.convolve(values, np.full(window, 1 / window), "same") if window else values


def _intensities(result: Result, kind: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """FLOP/s that wait behind a second of what links of a class carry, on average."""
    table, names = _table(result), result["columns"]
    load = _smoothed(table[:, names.index(f"load {kind}")])
    weighted = _smoothed(table[:, names.index(f"intensity {kind}")])
    return np.divide(weighted, load, out=np.zeros_like(load), where=load > 0)
