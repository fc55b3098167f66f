"""Runs compared: schedulers with the baseline of their run, and runs side by side with means over their seeds. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from testbed.metrics.catalogue import BASELINE, COMPARISON
from testbed.metrics.confidence import is_proven, spread_over_seeds
from testbed.metrics.metric import Entry, put
from testbed.results.run_inputs import OF_SCHEDULER, RunInputs, remarks, settings_without_effect, splitting_keys

Summary = Mapping[str, Any]
NOTHING: Final[Mapping[str, RunInputs]] = MappingProxyType({})
"""Nothing is known of what runs were given: those of one scenario count as alike."""
_NO_BASELINE: Final[dict[str, Any]] = {BASELINE: None, "gpu_utilization_points": None, "jct_change": {}}


def comparison(runs: Sequence[Entry]) -> dict[str, Any]:
    """The baseline's name, then for every other scheduler its change against the baseline."""
    if not runs:
        return {}
    baseline = runs[0]
    return {"baseline": baseline["scheduler"]} | {run["scheduler"]: _against(baseline, run) for run in runs[1:]}


def side_by_side(summaries: Mapping[str, Summary], inputs: Mapping[str, RunInputs] = NOTHING) -> dict[str, Any]:
    """``{"runs": [...], "means": [...], "remarks": [...]}``, JSON-ready; ``summaries``: label of a run -> its summary.

    ``inputs``: label -> what the run was given; ``remarks`` are lines about inputs that differ or are unknown.
    """
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
        "means": means(list(summaries.values()), [inputs.get(label, RunInputs()) for label in summaries]),
        "remarks": _remarks(summaries, inputs),
    }


def means(summaries: Sequence[Summary], inputs: Sequence[RunInputs] = ()) -> list[dict[str, Any]]:
    """A row per scenario, engine, scheduler and inputs with two runs or more: mean and spread over them.

    ``inputs`` of the row are those in which other runs of the scenario differ. ``gpu_utilization_points`` and
    ``jct_change`` are against the baseline of the same run, and None where the runs have different baselines;
    ``spread`` is the sample standard deviation of the utilisation. ``gpu_utilization_points_spread`` is the largest
    difference in points between two seeds, None of one seed; ``gpu_utilization_points_proven`` is whether the mean
    difference is larger: if it is not, it proves nothing.
    """
    groups: dict[tuple[str, str, str], list[tuple[dict[str, str], dict[str, Any]]]] = defaultdict(list)
    for summary, given in zip(summaries, inputs or [RunInputs()] * len(summaries), strict=True):
        for row in _rows(summary):
            name, baseline = row["scheduler"], summary["comparison"].get("baseline", "")
            whole = row | {"seed": summary["seed"], "baseline": given.values.get(f"{OF_SCHEDULER}{baseline}", baseline)}
            groups[summary["scenario"], summary["engine"], name].append((given.of(name), whole))
    return [
        {"scenario": scenario, "engine": engine, "scheduler": scheduler, "inputs": told, **_mean(rows)}
        for (scenario, engine, scheduler), own in groups.items()
        for told, rows in _alike(own)
        if len(rows) > 1
    ]


def _alike(rows: Sequence[tuple[dict[str, str], dict[str, Any]]]) -> list[tuple[dict[str, str], list[dict[str, Any]]]]:
    """The rows by what was given, told by as few keys as tell them apart."""
    keys = splitting_keys([given for given, _ in rows])
    found: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for given, row in rows:
        found[tuple(given.get(key, "") for key in keys)].append(row)
    return [(dict(zip(keys, values, strict=True)), own) for values, own in found.items()]


def _remarks(summaries: Mapping[str, Summary], inputs: Mapping[str, RunInputs]) -> list[str]:
    """What must be known of inputs and scales where runs of one scenario and engine stand beside each other."""
    together: dict[tuple[str, str], list[str]] = defaultdict(list)
    for label, summary in summaries.items():
        together[summary["scenario"], summary["engine"]].append(label)
    lines = []
    for (scenario, engine), labels in together.items():
        ran = {label: [run["scheduler"] for run in summaries[label]["runs"]] for label in labels}
        given = {label: inputs[label] for label in labels if label in inputs}
        results = {
            label: {run["scheduler"]: [run["gpu_utilization"], run["jobs"]] for run in summaries[label]["runs"]}
            for label in labels
        }
        seeds = {label: int(summaries[label]["seed"]) for label in labels}
        found = [*remarks(given, ran), *settings_without_effect(given, seeds, results)]
        lines += [f"{scenario}, {engine}: {line}" for line in found]
        baselines = {str(summaries[label]["comparison"].get("baseline", "")) for label in labels}
        if len(baselines) > 1:
            names = ", ".join(sorted(baselines))
            lines.append(f"{scenario}, {engine}: no mean of points over runs with different baselines: {names}")
        scales = dict.fromkeys(_scale(summaries[label]) for label in labels)
        if len(scales) > 1 and all(given[label].values.get("scale", "auto") == "auto" for label in given):
            lines.append(
                f"{scenario}, {engine}: averaged although scale: auto was {' and '.join(scales)}: it follows the jobs' "
                "places and the machine, and results are in the scenario's own units"
            )
    return lines


def _scale(summary: Summary) -> str:
    scale = summary["scale"]
    return f"rates / {scale['bandwidth']:g}, times x {scale['time']:g}"


def against(summary: Summary, run: Entry) -> Entry:
    """What the comparison of ``summary`` says about ``run``, and the baseline's utilisation; nothing of the baseline.

    The utilisation is there because points are shown as the difference of what is shown.
    """
    found = summary["comparison"].get(run["scheduler"])
    return {**found, BASELINE: summary["runs"][0]["gpu_utilization"]} if isinstance(found, Mapping) else {}


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
        compared = against(summary, run)
        rows.append(
            {
                "scheduler": run["scheduler"],
                "gpu_utilization": run["gpu_utilization"],
                "baseline_gpu_utilization": compared.get(BASELINE),
                "gpu_utilization_points": compared.get("gpu_utilization_points"),
                "jct_s": {job["name"]: job["jct_s"] for job in run["jobs"]},
                "jct_change": dict(compared.get("jct_change", {})),
                "verdict": run["fidelity"]["verdict"],
            }
        )
    return rows


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    utilization = [row["gpu_utilization"] for row in rows]
    if len({row["baseline"] for row in rows}) > 1:
        rows = [{**row, **_NO_BASELINE} for row in rows]
    return {
        "runs": len(rows),
        "gpu_utilization": statistics.fmean(utilization),
        "spread": statistics.stdev(utilization),
        BASELINE: _known_mean([row[BASELINE] for row in rows]),
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
