"""The document ``summary.json`` of a run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testbed.experiment.experiment import Experiment
from testbed.metrics.comparison import comparison
from testbed.metrics.managed_run import managed_entry
from testbed.metrics.measured import run_entry
from testbed.results.record import RunRecord

SCHEMA_VERSION = 1


def summary(experiment: Experiment, records: Sequence[RunRecord]) -> dict[str, Any]:
    """The document ``summary.json``, schema version 1; the first record is the baseline.

    A function of what a run directory holds, so that it can be recomputed from the files.
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


def _entry(record: RunRecord, experiment: Experiment) -> dict[str, Any]:
    if record.managed is not None:
        return managed_entry(record, record.managed, experiment)
    return run_entry(record, experiment)
