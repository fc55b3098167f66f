"""Figures 4 to 6 and 23 to 25 of Crux: the replays, and the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from statistics import fmean
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.crux.trace_plots import link_classes, over_time
from testbed.reproduce.kept_replays import DAY_S, Cell, Result, cell, results, trace_note, trace_of
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.plot_files import write_plot
from workloads.traces.measures import concurrency_of, share_up_to, size_steps

SCHEDULERS: Final = ("sincronia", "taccl-star", "cassini", "crux-pa", "crux-ps-pa", "crux")

FIGURE_23: Final[Mapping[str, Mapping[str, float]]] = {
    "clos": {"sincronia": 0.39, "taccl-star": 0.49, "cassini": 0.48, "crux-pa": 0.51, "crux-ps-pa": 0.62, "crux": 0.62},
    "double-sided": {
        "sincronia": 0.43,
        "taccl-star": 0.46,
        "cassini": 0.45,
        "crux-pa": 0.48,
        "crux-ps-pa": 0.51,
        "crux": 0.50,
    },
}
"""Labels of figure 23."""

FIGURE_24: Final[Mapping[str, tuple[float, float, float, float]]] = {
    "sincronia": (0.240, 0.380, 0.230, 0.135),
    "taccl-star": (0.368, 0.602, 0.487, 0.235),
    "cassini": (0.363, 0.560, 0.484, 0.217),
    "crux-pa": (0.372, 0.622, 0.534, 0.193),
    "crux-ps-pa": (0.533, 0.691, 0.616, 0.456),
    "crux": (0.533, 0.691, 0.616, 0.456),
}
"""Means of the curves of figure 24, read off: the whole, days 0 to 1, .7 to 1.6 and 3.85 to 5.77."""
SPANS: Final = {"mean": (0.0, 12.0), "first_day": (0.0, 1.0), "solid": (0.7, 1.6), "dashed": (3.85, 5.77)}
"""Days of figure 24's means."""

FIGURE_25: Final[Mapping[str, tuple[float, float]]] = {
    "none": (0.39, 0.62),
    "muri": (0.59, 0.73),
    "hived": (0.64, 0.75),
}
"""Placement -> labels of figure 25: without and with Crux."""

SIZES: Final = {1: 0.12, 4: 0.20, 8: 0.37, 16: 0.69, 32: 0.73, 48: 0.86, 64: 0.89, 128: 0.94, 256: 0.97, 512: 1.0}
"""GPUs -> share of jobs with at most as many: the curve of figure 4, read off."""
PLACED: Final = "consolidated"
"""The production placement tries the same host, then the same switch (section 2.2)."""


def first_only(note: str) -> Iterator[str]:
    """``note`` for the first row, nothing for the others."""
    yield note
    yield from repeat("")


def figure_23(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """A row per fabric and scheduler: utilisation of allocated GPUs, of all GPUs, and the mean over time."""
    cells = {(f, s): cell(settings, f, s) for f in FIGURE_23 for s in SCHEDULERS}
    found = results(list(cells.values()), settings, progress)
    note = trace_note(trace_of(cells["clos", "crux"]))
    return [
        PaperRow(f"{fabric} {scheduler}", {"utilization": FIGURE_23[fabric][scheduler]}, numbers(found[each]), its)
        for ((fabric, scheduler), each), its in zip(cells.items(), first_only(note), strict=False)
    ]


def numbers(result: Result) -> dict[str, float]:
    """Return the numbers of a row of figure 23."""
    keys = {
        "utilization": "gpu_utilization",
        "time_mean": "time_mean",
        "of_all": "busy_share",
        "stretch": "mean_stretch",
        "mean_jobs": "mean_jobs",
        "mean_gpus": "mean_gpus",
        "sharing_gpus": "sharing_gpus",
        "finished": "finished",
        "waiting": "waiting",
        "cpu_s": "cpu_s",
        "peak_bytes": "peak_bytes",
    }
    return {key: float(result[name]) for key, name in keys.items()}


def figure_24(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """A row per scheduler on Clos: means of utilisation over time; the curves and link classes go into two plots."""
    cells = {scheduler: cell(settings, "clos", scheduler) for scheduler in SCHEDULERS}
    found = results(list(cells.values()), settings, progress)
    curves = {scheduler: found[each] for scheduler, each in cells.items()}
    write_plot(lambda: over_time(curves), settings.out, "crux-fig24")
    write_plot(lambda: link_classes(curves), settings.out, "crux-fig24-links")
    note = trace_note(trace_of(cells["crux"]))
    rows: list[PaperRow] = []
    for scheduler, result in curves.items():
        paper = dict(zip(SPANS, FIGURE_24[scheduler], strict=True))
        here = {name: mean_over(result, *days) for name, days in SPANS.items()}
        rows.append(PaperRow(scheduler, paper, here, "" if rows else note))
    return rows


def mean_over(result: Result, from_day: float, to_day: float) -> float:
    """The mean over time of busy / allocated GPUs, times without an allocated GPU left out; 0 if there is none."""
    first, last = (int(day * DAY_S / result["bin_s"]) for day in (from_day, to_day))
    names = result["columns"]
    allocated, busy = names.index("allocated"), names.index("busy")
    shares = [row[busy] / row[allocated] for row in result["series"][first:last] if row[allocated] > 0]
    return fmean(shares) if shares else 0.0


def figure_25(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """A row per placement: utilisation under ECMP, under Sincronia, and under Crux."""
    schedulers = ("ecmp", "sincronia", "crux")
    cells = {(p, s): cell(settings, "clos", s, p) for p in FIGURE_25 for s in schedulers}
    found = results(list(cells.values()), settings, progress)
    note = trace_note(trace_of(cells["none", "crux"]))
    rows: list[PaperRow] = []
    for placer, (alone, crux) in FIGURE_25.items():
        ecmp, sincronia, ours = (float(found[cells[placer, s]]["gpu_utilization"]) for s in schedulers)
        paper = {"alone": alone, "crux": crux, "gain_points": 100 * (crux - alone)}
        here = {"alone": ecmp, "sincronia": sincronia, "crux": ours, "gain_points": 100 * (ours - ecmp)}
        rows.append(PaperRow(placer, paper, here, "" if rows else note))
    return rows


def figures_4_to_6(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Job sizes and concurrency of the trace, and, placed on the Clos, jobs and GPUs that share a link."""
    asked: Cell = cell(settings, "clos", "ecmp", PLACED)
    result = results([asked], settings, progress)[asked]
    trace = trace_of(asked)
    note, steps = trace_note(trace), size_steps(trace)
    sizes = [
        PaperRow(f"figure 4: jobs of at most {gpus} GPUs", {"value": share}, {"value": share_up_to(steps, gpus)}, its)
        for (gpus, share), its in zip(SIZES.items(), first_only(note), strict=False)
    ]
    running = concurrency_of(trace, asked.days * DAY_S)
    return [
        *sizes,
        PaperRow("figure 5: most jobs at a time", {"value": 37}, {"value": running.peak_jobs}),
        PaperRow("figure 5: most GPUs at a time", {"value": 1536}, {"value": running.peak_gpus}),
        PaperRow("figure 5: mean jobs", {"value": 12.3}, {"value": running.mean_jobs}),
        PaperRow("figure 5: mean GPUs", {"value": 678}, {"value": running.mean_gpus}),
        PaperRow("figure 6: jobs that share a link", {"value": 0.363}, {"value": float(result["sharing_jobs"])}),
        PaperRow(
            "figure 6: GPUs of jobs that share a link",
            {"value": 0.361},
            {"value": float(result["sharing_gpus"])},
            "the paper's text says 0.51, its curve averages 0.361",
        ),
    ]
