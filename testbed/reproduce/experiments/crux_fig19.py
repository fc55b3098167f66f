"""Figure 19 of Crux: GPT and two to four BERT on the testbed, contending in the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import PaperRow, Settings
from testbed.reproduce.figures.rows import COLUMNS as COLUMNS

SUMMARY: Final = "GPT and two to four BERT on the testbed, contending in the network"
SOURCE: Final = "Cao et al., SIGCOMM 2024, section 6.2, figure 19"
CASES: Final = 0
SEEDS: Final = 3


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per group of bars; utilisations are shares of 1."""
    from testbed.reproduce.figures.figure import reproduce

    return reproduce("crux-fig19", settings, progress)
