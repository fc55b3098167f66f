"""Figures 4 to 6 and 23 to 25 of Crux: the replays, and the paper's numbers beside ours.

Two inputs that the paper does not publish are fitted (:mod:`testbed.reproduce.crux.traces.fitted`) to two numbers; all
other bars are predicted. Beside them stand those of the inputs chosen a priori, of the first seed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from statistics import fmean
from typing import Final, TypeVar

from testbed.metrics.formats import proven_as_shown
from testbed.progress import Progress
from testbed.reproduce.crux.trace_plots import link_classes, over_time
from testbed.reproduce.crux.traces.calibration import RECORDED, SHARING_JOBS
from testbed.reproduce.crux.traces.comparison import distance_points, mean_distance_points, said_of_order
from testbed.reproduce.crux.traces.fitted import calibrated_on, fitted_inputs, scatter_of, scattered_by
from testbed.reproduce.crux.traces.inputs import A_PRIORI
from testbed.reproduce.kept_replays import DAY_S, Cell, Result, cell, trace_note, trace_of
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.plot_files import write_plot
from testbed.reproduce.replay_ensembles import (
    Ensemble,
    Variant,
    Variants,
    ensembles,
    over,
    points_numbers,
    refused_note,
    unproven_note,
    utilization,
    variants_of,
)
from workloads.traces.measures import concurrency_of, share_up_to, size_steps
from workloads.traces.trace import Trace

Key = TypeVar("Key")

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

TACCL_STAR: Final = "taccl-star"
BY_DISTANCE: Final = (("compression", "distance"),)
OTHER_READING: Final = "taccl-star, equal distances share a level"
"""A row of figure 23: the rule of TACCL* says nothing of jobs that are as far; otherwise the first to arrive leads."""
ROWS_OF_23: Final = (*SCHEDULERS, OTHER_READING)

SIZES: Final = {1: 0.12, 4: 0.20, 8: 0.37, 16: 0.69, 32: 0.73, 48: 0.86, 64: 0.89, 128: 0.94, 256: 0.97, 512: 1.0}
"""GPUs -> share of jobs with at most as many: the curve of figure 4, read off."""
CONCURRENCY: Final = (
    ("most jobs at a time", "peak_jobs", 37.0),
    ("most GPUs at a time", "peak_gpus", 1536.0),
    ("mean jobs", "mean_jobs", 12.3),
    ("mean GPUs", "mean_gpus", 678.0),
)
"""Of figure 5: what, its name in :class:`workloads.traces.measures.Concurrency`, the paper's number."""
FIGURE_6: Final = (
    ("jobs that share a link", "sharing_jobs", SHARING_JOBS, ""),
    ("jobs that share a PCIe link", "sharing_pcie_jobs", 0.005, "the mean of the paper's curve"),
    ("GPUs of jobs that share a link", "sharing_gpus", 0.361, "the paper's text says 0.51, its curve averages 0.361"),
)
"""What, its name in a replay's result, the paper's number, and a remark."""
PLACED: Final = "consolidated"
"""A priori the production placement tries the same host, then the same switch (section 2.2)."""
SAME_AS_NONE: Final = ("clos", "sincronia")
"""The bar of figure 23 that is the same number as "None" of figure 25, to which the volumes are fitted."""
FIRST: Final = "standard"
"""The numerical settings under which the bars with the inputs chosen a priori are computed."""


def figure_23(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """A row per fabric and scheduler: utilisation of allocated GPUs, of all GPUs, and the mean over time.

    The last row is the mean distance of the bars to the paper, without :data:`SAME_AS_NONE` and :data:`OTHER_READING`.
    """
    cells = {(fabric, s): _cell_of_23(settings, fabric, s) for fabric in FIGURE_23 for s in ROWS_OF_23}
    found, before = _fitted_and_a_priori(cells, settings, progress)
    rows: list[PaperRow] = []
    for fabric in FIGURE_23:
        busy = {scheduler: utilization(found[fabric, scheduler]) for scheduler in ROWS_OF_23}
        for scheduler in ROWS_OF_23:
            here = numbers(found[fabric, scheduler]) | busy[scheduler].numbers("utilization")
            here |= _against(busy, scheduler, "crux")
            here["distance"] = distance_points(_paper_of_23(fabric, scheduler), busy[scheduler].mean)
            a_priori = {"utilization": utilization(before[fabric, scheduler]).mean}
            rows.append(_bar_of_23(fabric, scheduler, here, a_priori, on_this=settings.trace is None))
    rows = list(_with_note(rows, _about(cells["clos", "crux"], found), "crux"))
    said = calibrated_on(fitted_inputs(settings.channels))
    return [replace(row, calibrated_on=said) for row in (*rows, _distances(rows, FIGURE_23))]


def _cell_of_23(settings: Settings, fabric: str, row: str) -> Cell:
    """The replay of a row of figure 23."""
    if row == OTHER_READING:
        return replace(cell(settings, fabric, TACCL_STAR), options=BY_DISTANCE)
    return cell(settings, fabric, row)


def _paper_of_23(fabric: str, row: str) -> float:
    return FIGURE_23[fabric][TACCL_STAR if row == OTHER_READING else row]


def _bar_of_23(
    fabric: str, scheduler: str, here: Mapping[str, float], a_priori: Mapping[str, float], *, on_this: bool
) -> PaperRow:
    """``on_this``: the inputs were fitted on the trace of the bar."""
    same = (fabric, scheduler) == SAME_AS_NONE
    note = "the same number as None in figure 25, to which the volumes are fitted: not in the mean" if same else ""
    return PaperRow(
        f"{fabric} {scheduler}",
        {"utilization": _paper_of_23(fabric, scheduler)},
        here,
        "another reading of its rule: not in the mean" if scheduler == OTHER_READING else note,
        fitted=("utilization", "distance") if same and on_this else (),
        a_priori=a_priori,
    )


def _distances(bars: Sequence[PaperRow], paper: Mapping[str, Mapping[str, float]]) -> PaperRow:
    """The mean distance of the predicted bars, and whether each fabric's come in the paper's order."""
    left_out = {" ".join(SAME_AS_NONE), *(f"{fabric} {OTHER_READING}" for fabric in paper)}
    predicted = [row for row in bars if row.label not in left_out]
    of_inputs = {
        key: mean_distance_points((row.paper["utilization"], getattr(row, key)["utilization"]) for row in predicted)
        for key in ("here", "a_priori")
    }
    here = {row.label: row.here["utilization"] for row in bars}
    orders = (
        f"{fabric}: {said_of_order(of_fabric, {each: here[f'{fabric} {each}'] for each in of_fabric})}"
        for fabric, of_fabric in paper.items()
    )
    return PaperRow(
        f"mean of {len(predicted)} bars",
        {},
        {"distance": of_inputs["here"]},
        "; ".join(orders),
        a_priori={"distance": of_inputs["a_priori"]},
    )


def _fitted_and_a_priori(
    cells: Mapping[Key, Cell], settings: Settings, progress: Progress
) -> tuple[Mapping[Key, Variants], Mapping[Key, Variants]]:
    """The replays with the fitted inputs, and those of the first seed with the inputs chosen a priori."""
    inputs = fitted_inputs(settings.channels)
    fitted = {key: inputs.of(each) for key, each in cells.items()}
    found = ensembles(list(fitted.values()), settings, progress)
    first = replace(settings, seeds=1, numerics=(FIRST,))
    chosen = {key: A_PRIORI.of(each) for key, each in cells.items()}
    before = ensembles(list(chosen.values()), first, progress)
    return (
        {key: found[each] for key, each in fitted.items()},
        {key: before[each] for key, each in chosen.items()},
    )


def _against(busy: Mapping[str, Ensemble], scheduler: str, reference: str) -> dict[str, float]:
    """The difference of a row to ``reference`` in points; nothing for the reference itself."""
    return {} if scheduler == reference else points_numbers("points", busy[scheduler].against(busy[reference]))


def _about(cell: Cell, found: Mapping[Key, Variants]) -> str:
    """The trace of ``cell``, and what jobs of it no replay could start."""
    return "; ".join(text for text in (trace_note(trace_of(cell)), refused_note(found.values())) if text)


def _with_note(rows: Sequence[PaperRow], note: str, reference: str, key: str = "points") -> Sequence[PaperRow]:
    """``rows``, the first with ``note`` and with the rows whose difference ``key`` to ``reference`` proves nothing."""
    unproven = [row.label for row in rows if _unproven(row.here, key)]
    said = "; ".join(text for text in (note, unproven_note(unproven, reference), rows[0].note) if text)
    return [replace(rows[0], note=said), *rows[1:]]


def _unproven(here: Mapping[str, float], key: str) -> bool:
    return key in here and not proven_as_shown(here[key], here.get(f"{key}_spread"))


def numbers(variants: Variants) -> dict[str, float]:
    """Return the numbers of a row of figure 23, as means over ``variants``."""
    keys = {
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
    return {key: fmean(float(result[name]) for result in variants.values()) for key, name in keys.items()}


def figure_24(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """A row per scheduler on Clos: means of utilisation over time; the curves and link classes go into two plots.

    The plots are those of the first seed under the default numerical settings.
    """
    cells = {scheduler: cell(settings, "clos", scheduler) for scheduler in SCHEDULERS}
    found, before = _fitted_and_a_priori(cells, settings, progress)
    first = variants_of(settings)[0]
    curves = {scheduler: each[first] for scheduler, each in found.items()}
    write_plot(lambda: over_time(curves), settings.out, "crux-fig24")
    write_plot(lambda: link_classes(curves), settings.out, "crux-fig24-links")
    means = {name: _means_over(each, settings.days) for name, each in found.items()}
    busy = {name: of_spans["mean"] for name, of_spans in means.items()}
    rows: list[PaperRow] = []
    said = calibrated_on(fitted_inputs(settings.channels))
    for scheduler, of_spans in means.items():
        paper = {name: value for name, value in zip(SPANS, FIGURE_24[scheduler], strict=True) if name in of_spans}
        here = {name: each.mean for name, each in of_spans.items()} | busy[scheduler].numbers("mean")
        a_priori = {name: each.mean for name, each in _means_over(before[scheduler], settings.days).items()}
        here |= _against(busy, scheduler, "crux")
        rows.append(PaperRow(scheduler, paper, here, calibrated_on=said, a_priori=a_priori))
    return _with_note(rows, _about(cells["crux"], found), "crux")


def _means_over(variants: Variants, days: float) -> dict[str, Ensemble]:
    """The mean utilisation over each of :data:`SPANS` that lies in ``days``, and over all of them as ``mean``."""
    within = {name: span for name, span in SPANS.items() if name == "mean" or span[1] <= days}
    return {name: over(variants, partial(mean_over, days=span)) for name, span in within.items()}


def mean_over(result: Result, days: tuple[float, float]) -> float:
    """The mean over ``days`` of busy / allocated GPUs, times without an allocated GPU left out; 0 if there is none."""
    first, last = (int(day * DAY_S / result["bin_s"]) for day in days)
    names = result["columns"]
    allocated, busy = names.index("allocated"), names.index("busy")
    shares = [row[busy] / row[allocated] for row in result["series"][first:last] if row[allocated] > 0]
    return fmean(shares) if shares else 0.0


def figure_25(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """A row per placement: utilisation under ECMP, under Sincronia, and under Crux. None alone is fitted."""
    schedulers = ("ecmp", "sincronia", "crux")
    cells = {(p, s): cell(settings, "clos", s, p) for p in FIGURE_25 for s in schedulers}
    found, before = _fitted_and_a_priori(cells, settings, progress)
    rows: list[PaperRow] = []
    said = calibrated_on(fitted_inputs(settings.channels))
    for placer, (alone, crux) in FIGURE_25.items():
        paper = {"alone": alone, "crux": crux, "gain_points": 100 * (crux - alone)}
        here, a_priori = (
            _bars_of_25(*(utilization(each[placer, scheduler]) for scheduler in schedulers)) for each in (found, before)
        )
        fitted = ("alone",) if placer == "none" and settings.trace is None else ()
        rows.append(PaperRow(placer, paper, here, fitted=fitted, calibrated_on=said, a_priori=a_priori))
    return _with_note(rows, _about(cells["none", "crux"], found), "ecmp", "gain_points")


def _bars_of_25(ecmp: Ensemble, sincronia: Ensemble, crux: Ensemble) -> dict[str, float]:
    bars = {**ecmp.numbers("alone"), **sincronia.numbers("sincronia"), **crux.numbers("crux")}
    return bars | points_numbers("gain_points", crux.against(ecmp))


def figures_4_to_6(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Job sizes and concurrency of the trace, and, placed on the Clos, jobs and GPUs that share a link.

    Each job takes its recorded time, as in figure 5: figure 6 shows production, whose times the trace records.
    """
    chosen = cell(settings, "clos", "ecmp", PLACED)
    inputs, on_this = scatter_of(settings.channels), settings.trace is None
    asked = replace(inputs, volume=RECORDED).of(cell(settings, "clos", "ecmp"))
    variants = ensembles([asked], settings, progress)[asked]
    before = ensembles([chosen], replace(settings, seeds=1, numerics=(FIRST,)), progress)[chosen]
    numerics = variants_of(settings)[0][1]
    traces = {(seed, name): trace_of(replace(asked, seed=seed)) for seed, name in variants if name == numerics}
    rows = [
        *_sizes(traces),
        *_concurrency(traces, asked.days * DAY_S),
        *(_sharing(each, scattered_by(inputs), variants, before, on_this) for each in FIGURE_6),
    ]
    return [replace(rows[0], note=trace_note(next(iter(traces.values())))), *rows[1:]]


def _sharing(
    shown: tuple[str, str, float, str], fitted_on: str, variants: Variants, before: Variants, on_this: bool
) -> PaperRow:
    """A row of figure 6. The share of jobs is what the placement is fitted to."""
    what, key, paper, note = shown
    fitted = key == "sharing_jobs"
    return PaperRow(
        f"figure 6: {what}",
        {"value": paper},
        over(variants, itemgetter(key)).numbers("value"),
        note,
        fitted=("value",) if fitted and on_this else (),
        calibrated_on=fitted_on,
        a_priori={"value": over(before, itemgetter(key)).mean},
    )


def _sizes(traces: Mapping[Variant, Trace]) -> Iterator[PaperRow]:
    """Figure 4."""
    steps = {variant: size_steps(trace) for variant, trace in traces.items()}
    for gpus, share in SIZES.items():
        here = Ensemble({variant: share_up_to(of_trace, gpus) for variant, of_trace in steps.items()})
        yield _value(f"figure 4: jobs of at most {gpus} GPUs", share, here)


def _concurrency(traces: Mapping[Variant, Trace], until_s: float) -> Iterator[PaperRow]:
    """Figure 5."""
    running = {variant: concurrency_of(trace, until_s) for variant, trace in traces.items()}
    for what, name, paper in CONCURRENCY:
        here = Ensemble({variant: float(getattr(each, name)) for variant, each in running.items()})
        yield _value(f"figure 5: {what}", paper, here)


def _value(label: str, paper: float, here: Ensemble) -> PaperRow:
    return PaperRow(label, {"value": paper}, here.numbers("value"))
