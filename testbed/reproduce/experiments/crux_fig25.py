"""Figure 25 of Crux: placements None, Muri and HiveD without and with Crux."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings
from testbed.reproduce.forms import percent

SUMMARY: Final = "placements None, Muri and HiveD without and with Crux"
SOURCE: Final = "Cao et al., SIGCOMM 2024, section 6.4, figure 25"
CASES: Final = 0
REPLAYS: Final = True


COLUMNS: Final = (
    Column("alone", "alone paper %", percent, paper=True),
    Column("alone", "ecmp %", percent),
    Column("sincronia", "sincronia %", percent),
    Column("crux", "+ Crux paper %", percent, paper=True),
    Column("crux", "here %", percent),
    Column("gain_points", "gain paper", lambda value: f"{value:+.0f}", paper=True),
    Column("gain_points", "here", lambda value: f"{value:+.1f}"),
)


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return the rows; a synthetic trace unless ``settings.trace`` names one."""
    from testbed.reproduce.traces.figures import figure_25

    return figure_25(settings, progress)
