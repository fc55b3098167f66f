"""The plots of a run as SVG: GPU timeline, idle time by cause, link load by level, evidence of the verdict.

matplotlib is imported by what draws, not by this module: a command that draws nothing starts fast.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from testbed.experiment.experiment import Experiment
from testbed.machine.distribution import has_extra
from testbed.report.evidence import draw_evidence, has_evidence
from testbed.report.failure_plot import draw_failures
from testbed.report.gpu_timeline import draw_gpus, draw_occupancy
from testbed.report.link_load import draw_links
from testbed.report.plain_text import without_formulas
from testbed.report.style import CAUSE_COLORS, figure
from testbed.report.tables import idle_shares, marked_run, percent
from testbed.results.failed_parts import failed_parts
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAUSES: Final = ("exposed", "straggler", "start")
CAUSE_WORDS: Final = {
    "exposed": "exposed communication",
    "straggler": "waiting for a peer",
    "start": "waiting to start",
}


def gpu_timeline(record: RunRecord, experiment: Experiment) -> Figure:
    """A row per GPU over a few iterations of the measured window: compute, straggler, exposed."""
    return draw_gpus(record, experiment.jobs)


def link_load(record: RunRecord, experiment: Experiment) -> Figure:
    """Load of the busiest links over time, stacked by level, as a share of the link's capacity."""
    return draw_links(record, experiment.fabric)


def idle_by_cause(summaries: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Stacked bars: idle share of the allocated GPU time by cause, for all jobs together and each.

    ``summaries``: label (empty for a single run) -> its ``summary.json``.
    """
    groups = _groups(summaries)
    rows = sum(len(bars) for bars in groups.values()) + len(groups)
    plot = figure(8.0, 1.1 + 0.24 * rows)
    axes = plot.add_subplot()
    place, labels = 0.0, []
    for name, bars in groups.items():
        for label, entry in bars:
            left = 0.0
            for cause, share in zip(CAUSES, idle_shares(entry), strict=True):
                axes.barh(place, 100 * share, 0.8, left=left, color=CAUSE_COLORS[cause], linewidth=0)
                left += 100 * share
            axes.text(left + 0.4, place, f"{percent(left / 100)} %", va="center", fontsize=7)
            labels.append((place, f"{name}  {label}"))
            place += 1.0
        place += 0.6
    axes.set_yticks([position for position, _ in labels], [label for _, label in labels], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("idle GPU time, % of the time allocated")
    axes.set_xlim(0, max(5.0, 1.12 * axes.dataLim.x1))
    handles = [axes.barh(0, 0, color=CAUSE_COLORS[cause], label=CAUSE_WORDS[cause]) for cause in CAUSES]
    axes.legend(handles=handles, ncols=3, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=8)
    return plot


def svg(plot: Figure) -> str:
    """The figure as an ``<svg>`` element, its texts as they are; the same bytes for the same figure."""
    import matplotlib

    stream = io.StringIO()
    # Text stays text, so that it can be read and searched; a fixed salt keeps the ids the same.
    with matplotlib.rc_context({"svg.hashsalt": "testbed", "svg.fonttype": "none"}):
        without_formulas(plot).savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    # A hundredth of a point is finer than any screen; more digits only make the report larger.
    return re.sub(r"(?<=\.\d\d)\d+(?=[ \n\"])", "", text[text.index("<svg") :])


def run_plots(summary: Mapping[str, Any], records: Sequence[RunRecord], experiment: Experiment) -> dict[str, str]:
    """Every plot of a run: file name -> SVG. None without matplotlib."""
    if not has_extra("plots"):
        return {}
    drawings: dict[str, Callable[[], Figure]] = {"idle_by_cause": lambda: idle_by_cause({"": summary})}
    for record in records:
        if record.managed is not None:
            drawings[f"occupancy_{record.scheduler}"] = partial(draw_occupancy, record, record.managed, experiment)
        else:
            drawings[f"gpu_timeline_{record.scheduler}"] = partial(gpu_timeline, record, experiment)
        drawings[f"link_load_{record.scheduler}"] = partial(link_load, record, experiment)
        if failed_parts(record):
            drawings[f"failures_{record.scheduler}"] = partial(draw_failures, record)
        if has_evidence(record):
            drawings[f"evidence_{record.scheduler}"] = partial(draw_evidence, record, experiment.scale.time)
    return {f"{name}.svg": svg(draw()) for name, draw in drawings.items()}


def write_plots(directory: RunDirectory, plots: Mapping[str, str]) -> list[Path]:
    """Write them to ``plots/`` of the run directory."""
    head = '<?xml version="1.0" encoding="utf-8" standalone="no"?>\n'
    return [directory.write_text(f"plots/{name}", head + text) for name, text in plots.items()]


def _groups(summaries: Mapping[str, Mapping[str, Any]]) -> dict[str, list[tuple[str, Mapping[str, Any]]]]:
    groups: dict[str, list[tuple[str, Mapping[str, Any]]]] = {"all": []}
    for label, summary in summaries.items():
        for run in summary["runs"]:
            name = f"{marked_run(run)} {label}".strip()
            groups["all"].append((name, run))
            for job in run["jobs"]:
                groups.setdefault(job["name"], []).append((name, job))
    return groups
