"""What failed when, and which jobs felt it: parts above, below each job the time that its iterations took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from testbed.report.style import CAUSE_COLORS, figure
from testbed.report.tables import marked
from testbed.results.failed_parts import Span, failed_parts, stopped_jobs
from testbed.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS_SHOWN: Final = 40
_DOWN, _STOPPED = "#444444", CAUSE_COLORS["exposed"]
_SLOW: Final = 1.02
"""An iteration that takes so many times the job's median is drawn as slower."""


def draw_failures(record: RunRecord) -> Figure:
    """Return the figure: bars of failed parts, and per job its iterations: usual, slower, or standing still."""
    parts, stopped = failed_parts(record), stopped_jobs(record)
    names = list(dict.fromkeys(part.name for part in parts))[:PARTS_SHOWN]
    jobs = list(dict.fromkeys(row.job for row in record.iterations))
    plot = figure(9.0, 1.2 + 0.22 * (len(names) + len(jobs)))
    axes = plot.add_subplot()
    _bars(axes, (part for part in parts if part.name in names), names, 0, _DOWN)
    first = len(names)
    for place, job in enumerate(jobs, first):
        for begin, end, slower in _iterations(record, job):
            color = CAUSE_COLORS["straggler"] if slower else CAUSE_COLORS["compute"]
            axes.barh(place, end - begin, 0.7, left=begin, color=color, edgecolor="white", linewidth=0.4)
    _bars(axes, stopped, jobs, first, _STOPPED)
    axes.set_yticks(range(first + len(jobs)), [*names, *jobs], fontsize=8)
    axes.set_ylim(first + len(jobs) - 0.5, -0.5)
    axes.set_xlim(0, record.duration_s)
    axes.set_xlabel("time, s")
    axes.set_title(marked(record.scheduler, record.fidelity.verdict), loc="left", fontsize=10)
    words = {
        "failed": _DOWN,
        "iteration": CAUSE_COLORS["compute"],
        "slower than usual": CAUSE_COLORS["straggler"],
        "stands still": _STOPPED,
    }
    handles = [axes.barh(0, 0, color=color, label=word) for word, color in words.items()]
    axes.legend(handles=handles, ncols=4, loc="lower right", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    return plot


def _bars(axes: Axes, spans: Iterable[Span], names: list[str], first: int, color: str) -> None:
    for span in spans:
        if span.name in names:
            axes.barh(first + names.index(span.name), span.length_s, 0.7, left=span.from_s, color=color, linewidth=0)


def _iterations(record: RunRecord, job: str) -> list[tuple[float, float, bool]]:
    """From, until, and whether it took longer than usual, of each iteration of ``job``."""
    spans: dict[int, tuple[float, float]] = {}
    for row in record.iterations:
        if row.job == job:
            begin, end = spans.get(row.iteration, (row.start_s, row.end_s))
            spans[row.iteration] = min(begin, row.start_s), max(end, row.end_s)
    usual = float(np.median([end - begin for begin, end in spans.values()]))
    return [(begin, end, end - begin > _SLOW * usual) for begin, end in spans.values()]
