"""Runs side by side: the summary of a run, what each job lost to collisions, and what a scheduler gained.

A job's loss is taken apart by analysis. With the paths decided for it but nothing else on the
fabric it would iterate in ``isolated(paths)``; without any of its own flows meeting, in
``isolated()``. The difference is what its *own* flows cost each other; what the measured mean takes
beyond ``isolated(paths)`` is due to the *other* jobs (jitter, stragglers and the emulation's own
error included).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller.service.json_codec import encode
from testbed.experiment.experiment import Experiment
from testbed.metrics.job_metrics import decision_for, run_entry
from testbed.metrics.managed_summary import managed_entry
from testbed.results.record import RunRecord
from testbed.results.schema import SCHEMA_VERSION
from workloads.job import Job


@dataclass(frozen=True, slots=True)
class Alone:
    """Analytic iteration time (s) and utilisation of a job alone: on no shared link, and on its decided paths."""

    ideal_s: float
    ideal_utilization: float
    decided_s: float
    decided_utilization: float


@dataclass(frozen=True, slots=True)
class Loss:
    """What a job loses per iteration (s) and in points of its GPU utilisation to its own flows and to other jobs."""

    own_s: float
    others_s: float
    own_points: float
    others_points: float


def summary(experiment: Experiment, records: Sequence[RunRecord]) -> dict[str, Any]:
    """The document ``summary.json``; the first record is the baseline.

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


def comparison(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The baseline's name, then for every other scheduler its change against the baseline."""
    if not runs:
        return {}
    baseline = runs[0]
    return {"baseline": baseline["scheduler"]} | {run["scheduler"]: _against(baseline, run) for run in runs[1:]}


def loss_of(entry: Mapping[str, Any], alone: Alone) -> Loss | None:
    """Take a job's loss apart; None if it has no measured iteration."""
    mean = entry["iteration_s"]["mean"]
    if mean is None:
        return None
    return Loss(
        own_s=alone.decided_s - alone.ideal_s,
        others_s=mean - alone.decided_s,
        own_points=100 * (alone.ideal_utilization - alone.decided_utilization),
        others_points=100 * (alone.decided_utilization - entry["gpu_utilization"]),
    )


def alone_of(job: Job, record: RunRecord, experiment: Experiment) -> Alone | None:
    """The job's analytic times under the decision in force; None if the switches chose its paths."""
    from workloads.analysis import isolated

    decision = decision_for(record, job)
    paths = decision.paths
    if any(flow.id not in paths or flow.id in decision.hashed for flow in job.flows):
        return None
    ideal = isolated(job, experiment.fabric)
    decided = isolated(job, experiment.fabric, {flow.id: paths[flow.id] for flow in job.flows})
    return Alone(ideal.iteration_s, ideal.utilization, decided.iteration_s, decided.utilization)


def _entry(record: RunRecord, experiment: Experiment) -> dict[str, Any]:
    if record.managed is not None:  # on other GPUs from time to time: there is no analysis of its paths
        return managed_entry(record, record.managed, experiment)
    return _with_losses(run_entry(record, experiment), record, experiment)


def _with_losses(run: dict[str, Any], record: RunRecord, experiment: Experiment) -> dict[str, Any]:
    for job, entry in zip(experiment.jobs, run["jobs"], strict=True):
        alone = alone_of(job, record, experiment)
        loss = loss_of(entry, alone) if alone else None
        entry["alone_s"] = {"ideal": alone.ideal_s, "decided_paths": alone.decided_s} if alone else None
        entry["loss"] = encode(loss)
    run["loss"] = _total(run["jobs"])
    return run


def _total(entries: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """Points over all GPUs: the jobs' weighted by the GPU time they were allocated."""
    allocated = sum(entry["allocated_gpu_s"] for entry in entries)
    if allocated <= 0 or any(entry["loss"] is None for entry in entries):
        return None
    return {
        key: sum(entry["loss"][key] * entry["allocated_gpu_s"] for entry in entries) / allocated
        for key in ("own_points", "others_points")
    }


def _against(baseline: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    before = {entry["name"]: entry for entry in baseline["jobs"]}
    pairs = [(before[entry["name"]], entry) for entry in run["jobs"] if entry["name"] in before]
    return {
        "gpu_utilization_points": 100 * (run["gpu_utilization"] - baseline["gpu_utilization"]),
        "jct_change": {new["name"]: change(old["jct_s"], new["jct_s"]) for old, new in pairs},
        "gain_split": {
            "run": _gain(baseline["loss"], run["loss"]),
            "jobs": {new["name"]: _gain(old["loss"], new["loss"]) for old, new in pairs},
        },
    }


def change(old: float | None, new: float | None) -> float | None:
    """Relative change, -0.1 for a tenth less; None where either is missing."""
    return new / old - 1 if old and new is not None else None


def _gain(before: Mapping[str, float] | None, after: Mapping[str, float] | None) -> dict[str, float] | None:
    """How much less is lost, column by column: positive is a gain."""
    if before is None or after is None:
        return None
    return {key: before[key] - after[key] for key in before}
