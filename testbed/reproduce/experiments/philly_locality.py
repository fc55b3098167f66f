"""What locality is worth: 16 GPUs on 2 servers or 8, jobs split 3 + 1, and the cost of spreading 4 GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings
from testbed.reproduce.forms import fine_percent, times

SUMMARY: Final = "locality: 16 GPUs on 2 servers or 8, jobs split 3 + 1, 4 GPUs on one, two or four servers"
SOURCE: Final = "Jeon et al., ATC 2019; step times published with Pollux, OSDI 2021"
CASES: Final = 0
SEEDS: Final = 1


COLUMNS: Final = (
    Column("utilization", "GPU util % paper", fine_percent, paper=True),
    Column("utilization", "here", fine_percent),
    Column("slow_down", "slow-down paper", times, paper=True),
    Column("slow_down", "here", times),
)


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per placement; utilisations are shares of 1, slow-downs ratios of iteration times."""
    from testbed.reproduce.managers.locality import reproduce

    return reproduce(settings, progress)
