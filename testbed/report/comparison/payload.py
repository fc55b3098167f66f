"""What the comparison page draws, as one JSON value; shares are 0 to 1, times seconds, points hundredths of a share."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from testbed.errors import BadInputError
from testbed.metrics.catalogue import BASELINE
from testbed.metrics.comparison import against
from testbed.metrics.confidence import half_width, is_proven, spread_over_seeds
from testbed.metrics.formats import percent, points_between, seconds
from testbed.report.comparison.compared_runs import ComparedRun, ComparedRuns, link_to
from testbed.report.comparison.distributions import iteration_times, link_loads, shape
from testbed.report.comparison.settings import short_names
from testbed.report.tables import idle_shares
from testbed.results.run_inputs import OF_SCHEDULER

MOST_ROWS: Final = 5_000
"""Rows of the table of runs: a page of some megabytes."""
MOST_READ: Final = 24
"""Runs whose rows are read for distributions: a few seconds."""
METRICS: Final = ("gpu_utilization", "gpu_utilization_points", "mean_jct_s")
DIFFERENCES: Final = ("gpu_utilization_points",)
"""Metrics that are differences to a baseline: those not larger than their spread prove nothing."""
_SHOWN_FROM: Final = (BASELINE, "gpu_utilization")
"""Differences are shown as the difference of what is shown."""


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

    Of a metric ``{"n", "mean", "half", "values", "shown"}``, over ``n`` seeds: ``half`` is half the width of the 95 %
    confidence interval of the mean, None of a single seed; ``shown`` is the mean as shown, ``values`` are [seed, value,
    value as shown]. Runs with the same seed count as one, with their mean: they are no independent samples. None where
    a run has no value: a mean over fewer runs would compare unlike things. ``gpu_utilization_points`` are paired: each
    run against the baseline of the same run, None where the runs have different ones; they also have ``spread``, the
    largest difference between two seeds (None of one), and ``proven``: whether the mean is larger.
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
    differs = metric in DIFFERENCES
    if any(row[metric] is None for row in rows) or (differs and len({row["baseline"] for row in rows}) > 1):
        return None
    by_seed: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_seed[row["seed"]].append(row)
    mean = {key: _mean_over_seeds(by_seed, key) for key in (metric, *(_SHOWN_FROM if differs else ()))}
    means = [statistics.fmean(row[metric] for row in own) for own in by_seed.values()]
    values = [[seed, row[metric], shown(metric, row)] for seed, own in by_seed.items() for row in own]
    found = {
        "n": len(means),
        "mean": mean[metric],
        "half": half_width(means),
        "values": values,
        "shown": shown(metric, mean),
    }
    if not differs:
        return found
    spread = spread_over_seeds([(row["seed"], row[metric]) for row in rows])
    return found | {"spread": spread, "proven": is_proven(mean[metric], spread)}


def _mean_over_seeds(by_seed: Mapping[int, Sequence[Mapping[str, Any]]], key: str) -> float:
    return statistics.fmean(statistics.fmean(row[key] for row in own) for own in by_seed.values())


def shown(metric: str, numbers: Mapping[str, Any]) -> str:
    """A metric as the page shows it, the same text as in a terminal; a dash where it is missing."""
    if metric == "gpu_utilization":
        return percent(numbers[metric])
    if metric in DIFFERENCES:
        return points_between(numbers[BASELINE], numbers["gpu_utilization"])
    return seconds(numbers[metric], 1)


def _rows(run: ComparedRun, page: Path) -> Iterator[dict[str, Any]]:
    link = link_to(run, page)
    baseline = str(run.summary["comparison"].get("baseline", ""))
    for entry in run.summary["runs"]:
        compared = against(run.summary, entry)
        times = [job["jct_s"] for job in entry["jobs"]]
        row = {
            "label": run.label,
            "name": run.name,
            "link": link,
            "scenario": run.summary["scenario"],
            "engine": run.summary["engine"],
            "seed": run.summary["seed"],
            "settings": run.settings_of(str(entry["scheduler"])),
            "scheduler": entry["scheduler"],
            "baseline": run.inputs.values.get(f"{OF_SCHEDULER}{baseline}", baseline),
            "verdict": entry["fidelity"]["verdict"],
            "gpu_utilization": entry["gpu_utilization"],
            BASELINE: compared.get(BASELINE),
            "gpu_utilization_points": compared.get("gpu_utilization_points"),
            "mean_jct_s": statistics.fmean(times) if times and None not in times else None,
            "idle": list(idle_shares(entry)),
        }
        yield row | {"shown": {metric: shown(metric, row) for metric in METRICS}}


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
            head |= {"settings": run.settings_of(record.scheduler)}
            iterations += [{**head, "of": job, **shape(own)} for job, own in iteration_times(record).items()]
            loads += [{**head, "of": kind, **shape(own)} for kind, own in link_loads(record, experiment).items()]
    return iterations, loads
