"""Figure 7 of Crux: GPT on 64 GPUs with and without BERT on 16 under the same two ToRs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings
from testbed.reproduce.forms import change

SUMMARY: Final = "GPT on 64 GPUs with and without BERT on 16 under the same two ToRs, under ECMP"
SOURCE: Final = "Cao et al., SIGCOMM 2024, section 2.2, figure 7"
CASES: Final = 0
SEEDS: Final = 20


COLUMNS: Final = (
    Column("change", "paper %", change, paper=True),
    Column("change", "here %", change),
    Column("spread", "+-", lambda value: f"{100 * value:.1f}"),
    Column("min", "min", change),
    Column("median", "median", change),
    Column("max", "max", change),
    Column("fluid_change", "fluid %", change),
    Column("fluid_min", "min", change),
    Column("fluid_median", "median", change),
    Column("fluid_max", "max", change),
)


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return relative changes over the hash seeds, measured and by the fluid model; then the model's sensitivity."""
    from testbed.reproduce.figures.motivation import reproduce

    return reproduce(settings, progress)
