"""Distributions of a run: how long the iterations of its jobs take, and how full its links are. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final

from testbed.experiment.experiment import Experiment
from testbed.results.record import RunRecord

SHARES: Final = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""The quantiles that are shown: extremes, 5 and 95 %, quartiles, median."""


def iteration_times(record: RunRecord) -> dict[str, list[float]]:
    """Job -> duration (s) of its measured iterations, each the mean over the job's GPUs; disturbed ones left out."""
    spans: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in record.iterations:
        window = record.windows.get(row.job)
        if window and not row.disturbed and window.start_s <= row.start_s and row.end_s <= window.end_s:
            spans[row.job, row.iteration].append(row.end_s - row.start_s)
    found: dict[str, list[float]] = defaultdict(list)
    for (job, _), durations in spans.items():
        found[job].append(fmean(durations))
    return dict(found)


def link_loads(record: RunRecord, experiment: Experiment) -> dict[str, list[float]]:
    """Kind of link -> mean load (0 to 1) over the run of each link of the fabric, idle ones included."""
    sent: dict[str, float] = defaultdict(float)
    for row in record.links:
        sent[row.link] += row.bytes
    last = max((row.time_s for row in record.links), default=0.0)
    found: dict[str, list[float]] = defaultdict(list)
    for link in experiment.fabric.network_links if last > 0 else ():
        found[link.kind].append(8 * sent[link.name] / link.capacity / last)
    return dict(found)


def shape(values: Sequence[float]) -> dict[str, Any]:
    """``{"n", "mean", "quantiles"}`` of ``values``, of which there is at least one."""
    ordered = sorted(values)
    return {"n": len(ordered), "mean": fmean(ordered), "quantiles": list(_quantiles(ordered))}


def _quantiles(ordered: Sequence[float]) -> Iterator[float]:
    """By linear interpolation between the values, as numpy does."""
    for share in SHARES:
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        yield ordered[below] + (place - below) * (ordered[above] - ordered[below])
