"""Every cluster manager with every communication scheduler on one trace: placement, or network scheduling?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings
from testbed.reproduce.forms import hours, percent
from workloads.managers.catalogue import MANAGERS

SUMMARY: Final = "every cluster manager with every communication scheduler on one trace"
SOURCE: Final = "no figure of a paper: the comparison that figure 25 of Cao et al. (SIGCOMM 2024) begins"
CASES: Final = 0
REPLAYS: Final = True
DAYS: Final = 1.0
"""Of the trace, unless told otherwise."""

SCHEDULERS: Final = ("ecmp", "taccl-star", "sincronia", "crux-pa", "crux")


COLUMNS: Final = (
    *(Column(name, f"{name} %", percent) for name in SCHEDULERS),
    Column("jct_mean_s", "JCT h", hours),
    Column("jct_p95_s", "p95", hours),
    Column("queue_mean_s", "queue h", hours),
    Column("preemptions", "preempted", lambda value: f"{value:.0f}"),
    Column("allocated", "allocated %", percent),
    Column("finished", "ended", lambda value: f"{value:.0f}"),
)
"""Utilisation of allocated GPUs under each scheduler; what follows is with the last one, Crux."""


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per manager; a synthetic trace unless ``settings.trace`` names one. Draws a heat map."""
    from testbed.reproduce.traces.managers import managers_by_schedulers

    return managers_by_schedulers(settings, progress, tuple(MANAGERS), SCHEDULERS, DAYS)
