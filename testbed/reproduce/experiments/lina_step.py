"""Lina's training step: all-to-alls before the job's own gradient exchange, against sharing evenly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings
from testbed.reproduce.forms import thousandths, times

SUMMARY: Final = "a mixture of experts: all-to-alls before gradients, against sharing evenly"
SOURCE: Final = "Li et al., ATC 2023: training steps up to 1.73 times as fast"
CASES: Final = 0
SEEDS: Final = 1


COLUMNS: Final = (
    Column("faster", "paper, up to", times, paper=True),
    Column("faster", "here", times),
    Column("after_s", "after s", thousandths),
    Column("evenly_s", "evenly s", thousandths),
    Column("first_s", "first s", thousandths),
)
"""Steps with gradients after all all-to-alls, beside them at one level, and behind them at a lower one."""


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per size of the gradients: as in the catalogue, in 32 bits, and in 4."""
    from testbed.reproduce.managers.lina import reproduce

    return reproduce(settings, progress)
