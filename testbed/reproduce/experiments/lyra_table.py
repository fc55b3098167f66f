"""Lyra's table: what loans from an inference cluster and elastic jobs do for queueing and completion times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, Row, Settings

SUMMARY: Final = "loans from inference and elastic jobs: queueing and completion times against a cluster without"
SOURCE: Final = "Li et al., EuroSys 2023, section 7 (simulation)"
CASES: Final = 0
REPLAYS: Final = True


def _times(value: float) -> str:
    return f"{value:.2f} x"


def _seconds(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


COLUMNS: Final = (
    Column("jct_times", "JCT paper", _times, paper=True),
    Column("jct_times", "here", _times),
    Column("queue_times", "queue paper", _times, paper=True),
    Column("queue_times", "here", _times),
    Column("jct_mean_s", "JCT s", _seconds),
    Column("jct_p95_s", "p95", _seconds),
    Column("queue_mean_s", "queue s", _seconds),
    Column("queue_p95_s", "p95", _seconds),
    Column("preempted_share", "preempted %", _percent),
)
"""Times against the baseline, larger is better; then seconds here."""


def run(settings: Settings, progress: Progress) -> Sequence[Row]:
    """Return the rows of the table on a synthetic trace, or on ``settings.trace``."""
    from testbed.reproduce.managers.lyra import reproduce

    return reproduce(settings, progress)
