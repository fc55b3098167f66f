"""What the plots have in common: size, colours, and a backend that needs no display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart.
CAUSE_COLORS: Final = {"compute": "#0072b2", "exposed": "#d55e00", "straggler": "#f0e442", "start": "#999999"}
LEVEL_COLORS: Final = (
    "#1b1b6b",
    "#d55e00",
    "#009e73",
    "#e69f00",
    "#56b4e9",
    "#cc79a7",
    "#f0e442",
    "#b0b0b0",
)


def figure(width: float, height: float) -> Figure:
    """An empty figure of that many inches, laid out so that nothing is cut off."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    plot = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(plot)
    return plot
