"""Every cluster manager on emulated packets: fifteen jobs that come to 32 GPUs, beside what the flow engine expects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings
from testbed.reproduce.forms import percent, tenths, whole

SUMMARY: Final = "every cluster manager on packets: fifteen jobs that come to 32 GPUs"
SOURCE: Final = "no figure of a paper: that managers work on packets as they do on fluids"
CASES: Final = 0
SEEDS: Final = 1


COLUMNS: Final = (
    Column("utilization", "GPU util %", percent),
    Column("jct_mean_s", "JCT mean s", tenths),
    Column("jct_mean_s_flow", "flow", tenths),
    Column("jct_p95_s", "p95", tenths),
    Column("queue_mean_s", "queue s", tenths),
    Column("makespan_s", "all s", tenths),
    Column("makespan_s_flow", "flow", tenths),
    Column("allocated", "held %", percent),
    Column("preemptions", "stops", whole),
    Column("migrations", "migrations", whole),
    Column("hosts_per_job", "hosts", tenths),
    Column("unfinished", "open", whole),
)


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per manager, under Crux; ``--row NAME`` takes some. ``..._flow``: the flow engine's."""
    from testbed.reproduce.managers.packets import reproduce

    return reproduce(settings, progress)
