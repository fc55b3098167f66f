"""The paper's bars and ours side by side, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from testbed.report.style import figure
from testbed.reproduce.paper_experiment import PaperRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BARS: Final = (("without", "w/o Crux", "#999999"), ("crux", "Crux", "#0072b2"), ("ideal", "Ideal", "#009e73"))
WIDTH: Final = 0.13
RANGE: Final = "#d55e00"


def bars(title: str, rows: Sequence[PaperRow]) -> Figure:
    """A group per row; for each of its three cases the paper's bar (hatched), ours, and the spread over seeds.

    A line beside ours spans what the flow engine finds with other inputs that fit as well, where a row has that.
    """
    plot = figure(2.2 + 2.0 * len(rows), 3.4)
    axes = plot.add_subplot()
    for place, row in enumerate(rows):
        for index, (key, _, color) in enumerate(BARS):
            left = place + (2 * index - 2.5) * WIDTH
            if key in row.paper:
                axes.bar(left, 100 * row.paper[key], WIDTH, color="white", edgecolor=color, hatch="////")
            if key in row.here:
                error = 100 * row.here.get(f"{key}_spread", 0.0)
                axes.bar(left + WIDTH, 100 * row.here[key], WIDTH, color=color, yerr=error or None, capsize=2)
            if f"{key}_least" in row.here:
                ends = (100 * row.here[f"{key}_least"], 100 * row.here[f"{key}_most"])
                axes.vlines(left + 1.4 * WIDTH, *ends, color=RANGE, linewidth=2)
    axes.set_xticks(range(len(rows)), [row.label for row in rows], fontsize=8)
    axes.set_ylabel("GPU utilisation, %")
    axes.set_ylim(0, 105)
    axes.set_title(f"{title}: paper (hatched) and here", fontsize=9, loc="left", pad=18)
    handles: list[Any] = [axes.bar(0, 0, color=color, label=label) for _, label, color in BARS]
    if any("crux_least" in row.here for row in rows):
        handles.append(axes.vlines([], 0, 0, color=RANGE, linewidth=2, label="inputs that fit as well"))
    axes.legend(handles=handles, ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=8)
    return plot


def slow_downs(values: Sequence[float], paper: float) -> Figure:
    """The share of hash seeds up to a slow-down of GPT, with the paper's as a line. ``values`` are not empty."""
    plot = figure(5.0, 3.2)
    axes = plot.add_subplot()
    ordered = sorted(100 * value for value in values)
    shares = [(place + 1) / len(ordered) for place in range(len(ordered))]
    axes.step([ordered[0], *ordered], [0.0, *shares], where="post", color="#0072b2", label=f"here, {len(values)} seeds")
    axes.axvline(100 * paper, color="#d55e00", linestyle="--", label="paper")
    axes.set_xlabel("longer iteration of GPT beside BERT, %")
    axes.set_ylabel("share of hash seeds")
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False, fontsize=8)
    return plot
