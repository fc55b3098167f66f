"""Figure 7 of Crux: GPT on 64 GPUs with and without BERT on 16 under the same two ToRs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, Row, Settings

SUMMARY: Final = "GPT on 64 GPUs with and without BERT on 16 under the same two ToRs, under ECMP"
SOURCE: Final = "Cao et al., SIGCOMM 2024, section 2.2, figure 7"
CASES: Final = 0
SEEDS: Final = 20


def _change(value: float) -> str:
    return f"{100 * value:+.1f}"


COLUMNS: Final = (
    Column("change", "paper %", _change, paper=True),
    Column("change", "here %", _change),
    Column("spread", "+-", lambda value: f"{100 * value:.1f}"),
    Column("min", "min", _change),
    Column("median", "median", _change),
    Column("max", "max", _change),
    Column("fluid_change", "fluid %", _change),
    Column("fluid_min", "min", _change),
    Column("fluid_median", "median", _change),
    Column("fluid_max", "max", _change),
)


def run(settings: Settings, progress: Progress) -> Sequence[Row]:
    """Return relative changes over the hash seeds, measured and by the fluid model; then the model's sensitivity."""
    from testbed.reproduce.figures.motivation import reproduce

    return reproduce(settings, progress)
