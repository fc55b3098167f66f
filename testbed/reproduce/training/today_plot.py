"""What each scheduler gains over ECMP for the jobs of today, by fabric and placement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from testbed.report.style import figure
from testbed.reproduce.paper_experiment import PaperRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS: Final = ("#0072b2", "#e69f00", "#999999", "#009e73")
WIDTH: Final = 0.19


def gains(rows: Sequence[PaperRow], schedulers: Sequence[str]) -> Figure:
    """A group of bars per row: points of GPU utilisation of each of ``schedulers`` but the first over that one."""
    reference, *others = schedulers
    plot = figure(1.2 + 0.95 * len(rows), 3.4)
    axes = plot.add_subplot()
    for index, (name, colour) in enumerate(zip(others, COLOURS, strict=True)):
        places = [place + (index - (len(others) - 1) / 2) * WIDTH for place in range(len(rows))]
        values = [100 * (row.here[name] - row.here[reference]) for row in rows]
        axes.bar(places, values, WIDTH, color=colour, label=name)
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.set_xticks(range(len(rows)), [row.label.replace(", ", "\n") for row in rows], fontsize=8)
    axes.set_ylabel(f"points of GPU utilisation over {reference}")
    axes.legend(frameon=False, fontsize=8, ncols=len(others), loc="upper left")
    return plot
