"""Figure 24 of Crux: utilisation over time and what link classes carry, six schedulers on Clos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings
from testbed.reproduce.forms import percent

SUMMARY: Final = "utilisation over time and what link classes carry, six schedulers on Clos"
SOURCE: Final = "Cao et al., SIGCOMM 2024, section 6.3, figure 24"
CASES: Final = 0
REPLAYS: Final = True


COLUMNS: Final = tuple(
    Column(key, f"{title} {side}", percent, paper=side == "paper")
    for key, title in (("mean", "12 days"), ("first_day", "day 1"), ("solid", ".7-1.6"), ("dashed", "3.9-5.8"))
    for side in ("paper", "here")
)


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return the rows; a synthetic trace unless ``settings.trace`` names one."""
    from testbed.reproduce.traces.figures import figure_24

    return figure_24(settings, progress)
