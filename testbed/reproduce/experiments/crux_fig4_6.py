"""Figures 4 to 6 of Crux: job sizes, concurrency and shared links of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings

SUMMARY: Final = "job sizes, concurrency and shared links of the trace"
SOURCE: Final = "Cao et al., SIGCOMM 2024, section 2.2, figures 4 to 6"
CASES: Final = 0
REPLAYS: Final = True


COLUMNS: Final = (
    Column("value", "paper", lambda value: f"{value:g}", paper=True),
    Column("value", "here", lambda value: f"{value:.3g}" if value < 1 else f"{value:.1f}"),
)


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return the rows; a synthetic trace unless ``settings.trace`` names one."""
    from testbed.reproduce.traces.figures import figures_4_to_6

    return figures_4_to_6(settings, progress)
