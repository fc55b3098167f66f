"""The flow engine against the emulation, over all bundled scenarios and schedulers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings
from testbed.reproduce.forms import percent

SUMMARY: Final = "the flow engine against the emulation: every bundled scenario, every scheduler"
SOURCE: Final = "no paper: targets are 1.5 points of GPU utilisation and 3 % of any job's iteration"
CASES: Final = 0
SEEDS: Final = 1


COLUMNS: Final = (
    Column("emulation", "emulated %", percent),
    Column("flow", "flow %", percent),
    Column("points", "points", lambda value: f"{value:+.2f}"),
    Column("iteration_error", "worst iteration %", lambda value: f"{100 * value:+.1f}"),
)


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row for each scenario and scheduler; ``--row SCENARIO`` or ``SCENARIO/SCHEDULER`` takes some."""
    from testbed.reproduce.twin.comparing import reproduce

    return reproduce(settings, progress)
