"""The heat map of ``managers-x-schedulers``: gains over the first scheduler; what proves nothing is grey."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from testbed.metrics.formats import proven_as_shown, signed
from testbed.report.style import figure
from testbed.reproduce.paper_experiment import PaperRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS: Final = "RdBu"
_GREY: Final = "#e4e4e4"
_GREY_TEXT: Final = "#6a6a6a"
_DARK_SHARE: Final = 0.6
"""Cells beyond this share of the scale are dark, and their text is white."""


def heat_map(rows: Sequence[PaperRow], schedulers: Sequence[str]) -> Figure:
    """Managers down, schedulers across: utilisation under the first (%), the others against it (points).

    Every cell has its spread. One whose difference is larger than its spread is coloured and bold, the others are grey.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    reference, *others = schedulers
    plot = figure(1.15 * len(schedulers) + 2.2, 0.42 * len(rows) + 1.5)
    axes = plot.add_subplot()
    largest = max((abs(row.here[f"{name}_points"]) for row in rows for name in others), default=0.0) or 1.0
    for down, row in enumerate(rows):
        _reference_cell(axes, down, row, reference)
        for across, name in enumerate(others, 1):
            _difference_cell(axes, (across, down), row, f"{name}_points", largest)
    axes.set_xlim(-0.5, len(schedulers) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(schedulers)), [f"{reference}, %", *others], fontsize=8)
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
    axes.tick_params(length=0)
    axes.set_title(f"GPU utilisation: points over {reference}; grey: below the spread, proves nothing", fontsize=8)
    plot.colorbar(ScalarMappable(Normalize(-largest, largest), _COLOURS), ax=axes, label=f"points over {reference}")
    return plot


def _reference_cell(axes: Axes, down: int, row: PaperRow, name: str) -> None:
    spreads = [row.here.get(f"{name}_{of}_spread") for of in ("seed", "numerical")]
    known = [100 * each for each in spreads if each is not None]
    below = f"\n\N{PLUS-MINUS SIGN} {max(known):.1f}" if known else ""
    axes.text(0, down, f"{100 * row.here[name]:.1f}{below}", ha="center", va="center", fontsize=6.5)


def _difference_cell(axes: Axes, place: tuple[int, int], row: PaperRow, key: str, largest: float) -> None:
    """``largest``: the difference, in points, at the end of the colour scale."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    value, spread = row.here[key], row.here.get(f"{key}_spread")
    proven = proven_as_shown(value, spread)
    face = colormaps[_COLOURS]((1 + value / largest) / 2) if proven else _GREY
    dark = proven and abs(value) > _DARK_SHARE * largest
    axes.add_patch(Rectangle((place[0] - 0.5, place[1] - 0.5), 1, 1, facecolor=face, edgecolor="white"))
    text = signed(value) + ("" if spread is None else f"\n\N{PLUS-MINUS SIGN} {spread:.1f}")
    colour = "white" if dark else "black" if proven else _GREY_TEXT
    axes.text(*place, text, ha="center", va="center", fontsize=6.5, color=colour, weight="bold" if proven else "normal")
