"""One figure: its rows, from kept or new runs, and its plot."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.progress import Progress
from testbed.reproduce.experiment import PaperRow, Settings
from testbed.reproduce.figures import plot
from testbed.reproduce.figures.bars import chosen
from testbed.reproduce.figures.rows import row, tasks
from testbed.reproduce.figures.runs import Execute, Runs, emulate


def reproduce(name: str, settings: Settings, progress: Progress, execute: Execute = emulate) -> Sequence[PaperRow]:
    """Return the rows of figure ``name``, in the order of the paper; the plot goes to ``settings.out``."""
    bars = chosen(name, settings.only)
    seeds = range(settings.seed, settings.seed + settings.seeds)
    wanted = {bar.scenario: tasks(bar, seeds) for bar in bars}
    runs = Runs(settings.out, redo=settings.redo, execute=execute)
    found = runs.all([task for own in wanted.values() for task in own], progress)
    progress.phase("fluid model")
    rows = [row(bar, wanted[bar.scenario], found) for bar in bars]
    plot.write(plot.bars(name, rows), settings.out, "+".join(settings.only) or name)
    return rows
