"""Lyra's table: what loans from an inference cluster and elastic jobs do for queueing and completion times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings
from testbed.reproduce.forms import percent, times, whole

SUMMARY: Final = "loans from inference and elastic jobs: queueing and completion times against a cluster without"
SOURCE: Final = "Li et al., EuroSys 2023, section 7 (simulation)"
CASES: Final = 0
REPLAYS: Final = True


COLUMNS: Final = (
    Column("jct_times", "JCT paper", times, paper=True),
    Column("jct_times", "here", times),
    Column("queue_times", "queue paper", times, paper=True),
    Column("queue_times", "here", times),
    Column("jct_mean_s", "JCT s", whole),
    Column("jct_p95_s", "p95", whole),
    Column("queue_mean_s", "queue s", whole),
    Column("queue_p95_s", "p95", whole),
    Column("preempted_share", "preempted %", percent),
)
"""Times against the baseline, larger is better; then seconds here."""


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return the rows of the table on a synthetic trace, or on ``settings.trace``."""
    from testbed.reproduce.managers.lyra import reproduce

    return reproduce(settings, progress)
