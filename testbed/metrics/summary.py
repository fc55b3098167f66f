"""Runs side by side: the document ``summary.json``, and what a scheduler gained over the baseline. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testbed.experiment.experiment import Experiment
from testbed.metrics.catalogue import COMPARISON
from testbed.metrics.managed_run import managed_entry
from testbed.metrics.measured import run_entry
from testbed.metrics.metric import Entry, put
from testbed.results.record import RunRecord

SCHEMA_VERSION = 1


def summary(experiment: Experiment, records: Sequence[RunRecord]) -> dict[str, Any]:
    """The document ``summary.json``, schema version 1; the first record is the baseline.

    A function of what a run directory holds, so that it can be computed again from the files.
    """
    runs = [_entry(record, experiment) for record in records]
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "scenario": experiment.name,
        "engine": records[0].engine if records else "",
        "seed": experiment.seed,
        "scale": {"bandwidth": experiment.scale.bandwidth, "time": experiment.scale.time},
        "runs": runs,
        "comparison": comparison(runs),
    }
    return document


def comparison(runs: Sequence[Entry]) -> dict[str, Any]:
    """The baseline's name, then for every other scheduler its change against the baseline."""
    if not runs:
        return {}
    baseline = runs[0]
    return {"baseline": baseline["scheduler"]} | {run["scheduler"]: _against(baseline, run) for run in runs[1:]}


def _entry(record: RunRecord, experiment: Experiment) -> dict[str, Any]:
    if record.managed is not None:
        return managed_entry(record, record.managed, experiment)
    return run_entry(record, experiment)


def _against(baseline: Entry, run: Entry) -> dict[str, Any]:
    before = {entry["name"]: entry for entry in baseline["jobs"]}
    pairs = {entry["name"]: (before[entry["name"]], entry) for entry in run["jobs"] if entry["name"] in before}
    found: dict[str, Any] = {}
    for metric in COMPARISON:
        by_job = {name: metric.value(pair) for name, pair in pairs.items()} if metric.by_job else None
        put(found, metric.key, by_job if metric.by_job else metric.value((baseline, run)))
    return found
