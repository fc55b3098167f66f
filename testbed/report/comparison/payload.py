"""What the comparison page draws, as one JSON value; shares are 0 to 1, times seconds, points hundredths of a share."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from testbed.errors import BadInputError
from testbed.metrics.confidence import half_width, is_proven, spread_over_seeds
from testbed.report.comparison.compared_runs import ComparedRun, ComparedRuns, link_to
from testbed.report.comparison.distributions import iteration_times, link_loads, shape
from testbed.report.comparison.settings import short_names
from testbed.report.tables import idle_shares

MOST_ROWS: Final = 5_000
"""Rows of the table of runs: a page of some megabytes."""
MOST_READ: Final = 24
"""Runs whose rows are read for distributions: a few seconds."""
METRICS: Final = ("gpu_utilization", "gpu_utilization_points", "mean_jct_s")
DIFFERENCES: Final = ("gpu_utilization_points",)
"""Metrics that are differences to a baseline: those not larger than their spread prove nothing."""


def document(compared: ComparedRuns, page: Path) -> dict[str, Any]:
    """The value for the page in the folder ``page``, which has links to the reports of the runs."""
    rows = [row for run in compared.runs for row in _rows(run, page)]
    iterations, loads = _distributions(compared.runs[:MOST_READ])
    return {
        "keys": short_names(compared.keys),
        "runs": rows[:MOST_ROWS],
        "run_count": len(compared.runs),
        "row_count": len(rows),
        "groups": groups(rows),
        "iterations": iterations,
        "loads": loads,
        "read": min(len(compared.runs), MOST_READ),
        "missing": list(compared.missing),
    }


def groups(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per combination of parameters, scenario, engine and scheduler: each metric over the runs of the group.

    Of a metric ``{"n", "mean", "half", "values"}``, over ``n`` seeds: ``half`` is half the width of the 95 % confidence
    interval of the mean, None of a single seed; ``values`` are [seed, value]. Runs with the same seed count as one,
    with their mean: they are no independent samples. None where a run has no value: a mean over fewer runs would
    compare unlike things. ``gpu_utilization_points`` are paired: each run against the baseline of the same run; they
    also have ``spread``, the largest difference between two seeds (None of one), and ``proven``: whether the mean is
    larger.
    """
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[*row["settings"], row["scenario"], row["engine"], row["scheduler"]].append(row)
    return [
        {
            **{key: own[0][key] for key in ("settings", "scenario", "engine", "scheduler")},
            "ok": sum(row["verdict"] == "ok" for row in own),
            "runs": len(own),
            "idle": [statistics.fmean(share) for share in zip(*(row["idle"] for row in own), strict=True)],
            "metrics": {metric: _over(own, metric) for metric in METRICS},
        }
        for own in found.values()
    ]


def _over(rows: Sequence[Mapping[str, Any]], metric: str) -> dict[str, Any] | None:
    if any(row[metric] is None for row in rows):
        return None
    by_seed: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        by_seed[row["seed"]].append(row[metric])
    means = [statistics.fmean(own) for own in by_seed.values()]
    pairs = [[seed, value] for seed, own in by_seed.items() for value in own]
    mean = statistics.fmean(means)
    found = {"n": len(means), "mean": mean, "half": half_width(means), "values": pairs}
    if metric not in DIFFERENCES:
        return found
    spread = spread_over_seeds([(row["seed"], row[metric]) for row in rows])
    return found | {"spread": spread, "proven": is_proven(mean, spread)}


def _rows(run: ComparedRun, page: Path) -> Iterator[dict[str, Any]]:
    link = link_to(run, page)
    for entry in run.summary["runs"]:
        against = run.summary["comparison"].get(entry["scheduler"])
        times = [job["jct_s"] for job in entry["jobs"]]
        yield {
            "label": run.label,
            "name": run.name,
            "link": link,
            "scenario": run.summary["scenario"],
            "engine": run.summary["engine"],
            "seed": run.summary["seed"],
            "settings": list(run.settings.values()),
            "scheduler": entry["scheduler"],
            "verdict": entry["fidelity"]["verdict"],
            "gpu_utilization": entry["gpu_utilization"],
            "gpu_utilization_points": against["gpu_utilization_points"] if isinstance(against, Mapping) else None,
            "mean_jct_s": statistics.fmean(times) if times and None not in times else None,
            "idle": list(idle_shares(entry)),
        }


def _distributions(runs: Sequence[ComparedRun]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Shapes by run and scheduler: of iteration times by job, of link loads by kind; runs without rows are left out."""
    iterations: list[dict[str, Any]] = []
    loads: list[dict[str, Any]] = []
    for run in runs:
        try:
            experiment, records = run.directory.read_experiment(), run.directory.read_records()
        except BadInputError:
            continue
        for record in records:
            head = {"label": run.label, "seed": run.summary["seed"], "scheduler": record.scheduler}
            head |= {"settings": list(run.settings.values())}
            iterations += [{**head, "of": job, **shape(own)} for job, own in iteration_times(record).items()]
            loads += [{**head, "of": kind, **shape(own)} for kind, own in link_loads(record, experiment).items()]
    return iterations, loads
