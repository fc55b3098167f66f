"""Every cluster manager on emulated packets: fifteen jobs that come to 32 GPUs, beside what the flow engine expects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, Row, Settings

SUMMARY: Final = "every cluster manager on packets: fifteen jobs that come to 32 GPUs"
SOURCE: Final = "no figure of a paper: that managers work on packets as they do on fluids"
CASES: Final = 0
SEEDS: Final = 1


def _seconds(value: float) -> str:
    return f"{value:.1f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _count(value: float) -> str:
    return f"{value:.0f}"


COLUMNS: Final = (
    Column("utilization", "GPU util %", _percent),
    Column("jct_mean_s", "JCT mean s", _seconds),
    Column("jct_mean_s_flow", "flow", _seconds),
    Column("jct_p95_s", "p95", _seconds),
    Column("queue_mean_s", "queue s", _seconds),
    Column("makespan_s", "all s", _seconds),
    Column("makespan_s_flow", "flow", _seconds),
    Column("allocated", "held %", _percent),
    Column("preemptions", "stops", _count),
    Column("moves", "moves", _count),
    Column("hosts_per_job", "hosts", _seconds),
    Column("unfinished", "open", _count),
)


def run(settings: Settings, progress: Progress) -> Sequence[Row]:
    """Return a row per manager, under Crux; ``--row NAME`` takes some. ``..._flow``: the flow engine's."""
    from testbed.reproduce.managers.packets import reproduce

    return reproduce(settings, progress)
