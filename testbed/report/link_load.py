"""Load of the busiest links over time, stacked by level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from testbed.report.style import LEVEL_COLORS, figure
from testbed.report.tables import marked
from testbed.results.record import LinkRow, RunRecord
from topologies.fabric import Fabric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINKS_SHOWN: Final = 6


def draw_links(record: RunRecord, fabric: Fabric) -> Figure:
    """The figure: a strip per link, the busiest on top."""
    names = busiest(record.links, fabric)
    levels = sorted({row.level for row in record.links})
    plot = figure(10.0, 1.0 + 0.95 * max(1, len(names)))
    strips = plot.subplots(max(1, len(names)), 1, sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(strips, names, strict=False):
        edges, loads = load(record.links, name, levels, fabric)
        below = np.zeros(len(edges) - 1)
        for level in levels:
            above = below + 100 * loads[level]
            axes.stairs(above, edges, baseline=below, fill=True, color=LEVEL_COLORS[level % 8], label=f"level {level}")
            below = above
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(0, 105)
        axes.set_yticks([0, 50, 100])
        axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    if not names:
        strips[0].text(0.5, 0.5, "no bytes were sent", ha="center", transform=strips[0].transAxes)
    else:
        handles, labels = strips[0].get_legend_handles_labels()
        plot.legend(handles, labels, ncols=8, loc="outside upper right", frameon=False, fontsize=8)
    strips[-1].set_xlabel("time, s")
    name = marked(record.scheduler, record.fidelity.verdict)
    plot.suptitle(f"{name}: load in % of the link's rate", x=0.01, ha="left", fontsize=10)
    return plot


def busiest(rows: Sequence[LinkRow], fabric: Fabric, count: int = LINKS_SHOWN) -> list[str]:
    """Names of the links with the largest load, links between switches first, where jobs contend."""
    sent: dict[str, float] = defaultdict(float)
    for row in rows:
        sent[row.link] += row.bytes
    known = [name for name, size in sent.items() if name in fabric.links and size > 0]
    return sorted(
        known,
        key=lambda name: (
            fabric.links[name].kind == "host-tor",
            -sent[name] / fabric.links[name].capacity,
            name,
        ),
    )[:count]


def load(
    rows: Sequence[LinkRow], link: str, levels: Sequence[int], fabric: Fabric
) -> tuple[list[float], Mapping[int, NDArray[np.float64]]]:
    """Edges of the samples in seconds (n + 1) and, by level, the share of the link's capacity in each (n)."""
    times = sorted({row.time_s for row in rows})
    # The first sample tells what was sent since the one before it, which is not there.
    first = times[0] - (times[1] - times[0] if len(times) > 1 else 1.0)
    edges = [max(0.0, first) if times[0] > 0 else first, *times]
    index = {time: number for number, time in enumerate(times)}
    sent = {level: np.zeros(len(times)) for level in levels}
    for row in rows:
        if row.link == link:
            sent[row.level][index[row.time_s]] += row.bytes
    widths = np.diff(edges)
    return edges, {level: 8 * size / widths / fabric.links[link].capacity for level, size in sent.items()}
