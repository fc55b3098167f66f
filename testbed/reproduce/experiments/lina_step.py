"""Lina's training step: all-to-alls before the job's own gradient exchange, against sharing evenly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, Row, Settings

SUMMARY: Final = "a mixture of experts: all-to-alls before gradients, against sharing evenly"
SOURCE: Final = "Li et al., ATC 2023: training steps up to 1.73 times as fast"
CASES: Final = 0
SEEDS: Final = 1


def _times(value: float) -> str:
    return f"{value:.2f} x"


def _seconds(value: float) -> str:
    return f"{value:.3f}"


COLUMNS: Final = (
    Column("faster", "paper, up to", _times, paper=True),
    Column("faster", "here", _times),
    Column("after_s", "after s", _seconds),
    Column("evenly_s", "evenly s", _seconds),
    Column("first_s", "first s", _seconds),
)
"""Steps with gradients after all all-to-alls, beside them at one level, and behind them at a lower one."""


def run(settings: Settings, progress: Progress) -> Sequence[Row]:
    """Return a row per size of the gradients: as in the catalogue, in 32 bits, and in 4."""
    from testbed.reproduce.managers.lina import reproduce

    return reproduce(settings, progress)
