"""Figure 23 of Crux: six schedulers over two weeks of trace on two fabrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings
from testbed.reproduce.forms import percent

SUMMARY: Final = "six schedulers over two weeks of trace on two fabrics"
SOURCE: Final = "Cao et al., SIGCOMM 2024, section 6.3, figure 23"
CASES: Final = 0
REPLAYS: Final = True


COLUMNS: Final = (
    Column("utilization", "paper %", percent, paper=True),
    Column("utilization", "here %", percent),
    Column("time_mean", "over time %", percent),
    Column("of_all", "of all GPUs %", percent),
    Column("stretch", "stretch", lambda value: f"{value:.2f}"),
    Column("mean_gpus", "GPUs", lambda value: f"{value:.0f}"),
    Column("sharing_gpus", "sharing %", percent),
    Column("cpu_s", "CPU s", lambda value: f"{value:.0f}"),
    Column("peak_bytes", "MiB", lambda value: f"{value / 2**20:.0f}"),
)


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return the rows; a synthetic trace unless ``settings.trace`` names one."""
    from testbed.reproduce.traces.figures import figure_23

    return figure_23(settings, progress)
