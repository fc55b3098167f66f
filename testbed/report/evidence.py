"""The evidence behind a verdict over time: CPU, waiting for it, lateness of timers, rates of links; findings shaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from testbed.fidelity.interference import MAX_RUN_DELAY, MIN_IDLE_CPU
from testbed.fidelity.verdict import MAX_LINK_RATE_ERROR, MAX_TIMER_LATENESS_S
from testbed.report.page.evidence_view import rate_errors
from testbed.report.style import figure
from testbed.report.tables import marked
from testbed.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE: Final = "#0072b2"
ORANGE: Final = "#d55e00"
GREEN: Final = "#009e73"
GREY: Final = "#999999"
_LIMIT: Final[dict[str, Any]] = {"color": "black", "linewidth": 0.8, "linestyle": ":"}


def has_evidence(record: RunRecord) -> bool:
    """Whether the run left evidence over time: emulated ones do."""
    return bool(record.environment.get("cpu"))


def draw_evidence(record: RunRecord, dilation: float) -> Figure:
    """The figure: four strips over the run's time; dotted lines are thresholds, shaded spans are findings."""
    strips: dict[str, Callable[[Axes, Mapping[str, Any], float], None]] = {
        "CPU, %": _cpu,
        "waiting\nfor CPU, %": _waiting,
        "late by, ms": _lateness,
        "link rate\nerror, %": _rates,
    }
    plot = figure(10.0, 1.0 + 1.35 * len(strips))
    all_axes = plot.subplots(len(strips), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (label, draw) in zip(all_axes, strips.items(), strict=True):
        draw(axes, record.environment, dilation)
        _shade(axes, record)
        axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
        axes.tick_params(labelsize=8)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(ncols=5, loc="upper right", fontsize=7, framealpha=0.8)
    all_axes[-1].set_xlabel("time, s")
    name = marked(record.scheduler, record.fidelity.verdict)
    plot.suptitle(f"{name}: evidence; dotted: threshold, shaded: finding", x=0.01, ha="left", fontsize=10)
    return plot


def _shade(axes: Axes, record: RunRecord) -> None:
    for finding in record.fidelity.findings:
        color = GREY if finding.discarded else ORANGE
        axes.axvspan(finding.from_s, max(finding.to_s, finding.from_s + 0.01), color=color, alpha=0.18, linewidth=0)


def _cpu(axes: Axes, evidence: Mapping[str, Any], dilation: float) -> None:
    rows = evidence["cpu"]
    for place, label, color in ((2, "idle", BLUE), (3, "stolen", ORANGE), (4, "other processes", GREEN)):
        _steps(axes, rows, place, label, color, dilation)
    axes.axhline(100 * MIN_IDLE_CPU, **_LIMIT)
    axes.set_ylim(0, 100)


def _waiting(axes: Axes, evidence: Mapping[str, Any], dilation: float) -> None:
    pressure = [row for row in evidence["cpu"] if len(row) > 5]
    _steps(axes, pressure, 5, "anything (PSI)", GREY, dilation)
    rows = evidence.get("run_delay", [])
    names = {"Open vSwitch": BLUE, "controller": GREEN, "slowest worker": ORANGE, "quota": "black"}
    for place, (label, color) in enumerate(names.items(), start=1):
        _steps(axes, rows, place, label, color, dilation)
    axes.axhline(100 * MAX_RUN_DELAY, **_LIMIT)
    axes.set_ylim(bottom=0)


def _lateness(axes: Axes, evidence: Mapping[str, Any], dilation: float) -> None:
    timers = evidence.get("timers", [])
    axes.plot(
        [row[0] / dilation for row in timers],
        [1e3 * row[1] for row in timers],
        ".",
        color=BLUE,
        markersize=3,
        label="compute timers",
    )
    still = evidence.get("standstills", [])
    if still:
        axes.plot(
            [row[2] / dilation for row in still],
            [1e3 * (row[2] - row[1]) for row in still],
            "x",
            color=ORANGE,
            label="standstills",
        )
    axes.axhline(1e3 * MAX_TIMER_LATENESS_S, **_LIMIT)
    axes.set_ylim(bottom=0)


def _rates(axes: Axes, evidence: Mapping[str, Any], dilation: float) -> None:
    """What is judged: the error of a link over all of its busy stretches, the grain of packets taken off."""
    spans = evidence.get("link_stretches", {})
    for row in rate_errors(evidence.get("link_rates", {})):
        if row["judged"] and spans.get(row["link"]):
            begin, end = spans[row["link"]][0][0] / dilation, spans[row["link"]][-1][1] / dilation
            axes.plot([begin, end], [row["error"]] * 2, color=BLUE, alpha=0.4, linewidth=1)
    for limit in (-100 * MAX_LINK_RATE_ERROR, 100 * MAX_LINK_RATE_ERROR):
        axes.axhline(limit, **_LIMIT)


def _steps(axes: Axes, rows: Sequence[Sequence[float]], place: int, label: str, color: str, dilation: float) -> None:
    times = [row[0] / dilation for row in rows]
    axes.step(times, [100 * row[place] for row in rows], where="pre", color=color, label=label, linewidth=1)
