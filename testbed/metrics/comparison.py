"""Runs compared: schedulers with the baseline of their run, and runs side by side with means over their seeds. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.metrics.catalogue import COMPARISON
from testbed.metrics.confidence import is_proven, spread_over_seeds
from testbed.metrics.metric import Entry, put

Summary = Mapping[str, Any]


def comparison(runs: Sequence[Entry]) -> dict[str, Any]:
    """The baseline's name, then for every other scheduler its change against the baseline."""
    if not runs:
        return {}
    baseline = runs[0]
    return {"baseline": baseline["scheduler"]} | {run["scheduler"]: _against(baseline, run) for run in runs[1:]}


def side_by_side(summaries: Mapping[str, Summary]) -> dict[str, Any]:
    """``{"runs": [...], "means": [...]}``, JSON-ready; ``summaries``: label of a run -> its summary."""
    return {
        "runs": [
            {
                "label": label,
                "scenario": summary["scenario"],
                "engine": summary["engine"],
                "seed": summary["seed"],
                **row,
            }
            for label, summary in summaries.items()
            for row in _rows(summary)
        ],
        "means": means(list(summaries.values())),
    }


def means(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """A row per scenario, engine and scheduler with two runs or more: mean and spread over them.

    ``gpu_utilization_points`` and ``jct_change`` are against the baseline of the same run;
    ``spread`` is the sample standard deviation of the utilisation. ``gpu_utilization_points_spread`` is the largest
    difference in points between two seeds, None of one seed; ``gpu_utilization_points_proven`` is whether the mean
    difference is larger: if it is not, it proves nothing.
    """
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for summary in summaries:
        for row in _rows(summary):
            groups[summary["scenario"], summary["engine"], row["scheduler"]].append(row | {"seed": summary["seed"]})
    return [
        {"scenario": scenario, "engine": engine, "scheduler": scheduler, **_mean(rows)}
        for (scenario, engine, scheduler), rows in groups.items()
        if len(rows) > 1
    ]


def _against(baseline: Entry, run: Entry) -> dict[str, Any]:
    before = {entry["name"]: entry for entry in baseline["jobs"]}
    pairs = {entry["name"]: (before[entry["name"]], entry) for entry in run["jobs"] if entry["name"] in before}
    found: dict[str, Any] = {}
    for metric in COMPARISON:
        by_job = {name: metric.value(pair) for name, pair in pairs.items()} if metric.by_job else None
        put(found, metric.key, by_job if metric.by_job else metric.value((baseline, run)))
    return found


def _rows(summary: Summary) -> list[dict[str, Any]]:
    rows = []
    for run in summary["runs"]:
        against = summary["comparison"].get(run["scheduler"])
        against = against if isinstance(against, Mapping) else {"gpu_utilization_points": None, "jct_change": {}}
        rows.append(
            {
                "scheduler": run["scheduler"],
                "gpu_utilization": run["gpu_utilization"],
                "gpu_utilization_points": against["gpu_utilization_points"],
                "jct_s": {job["name"]: job["jct_s"] for job in run["jobs"]},
                "jct_change": dict(against["jct_change"]),
                "verdict": run["fidelity"]["verdict"],
            }
        )
    return rows


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    utilization = [row["gpu_utilization"] for row in rows]
    return {
        "runs": len(rows),
        "gpu_utilization": statistics.fmean(utilization),
        "spread": statistics.stdev(utilization),
        **_points(rows),
        "jct_s": _by_job([row["jct_s"] for row in rows]),
        "jct_change": _by_job([row["jct_change"] for row in rows]),
        "believable": sum(row["verdict"] == "ok" for row in rows),
    }


def _points(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean difference to the baseline, its spread, and whether it proves something; all None without one."""
    mean = _known_mean([row["gpu_utilization_points"] for row in rows])
    known = mean is not None
    spread = spread_over_seeds([(row["seed"], row["gpu_utilization_points"]) for row in rows]) if known else None
    return {
        "gpu_utilization_points": mean,
        "gpu_utilization_points_spread": spread,
        "gpu_utilization_points_proven": None if mean is None else is_proven(mean, spread),
    }


def _by_job(columns: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    names = dict.fromkeys(name for column in columns for name in column)
    return {name: _known_mean([column.get(name) for column in columns]) for name in names}


def _known_mean(values: Sequence[float | None]) -> float | None:
    """The mean; None if one is missing, for a mean over fewer runs would compare unlike things."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None
