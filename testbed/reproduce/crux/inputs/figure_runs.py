"""Figures 19 to 22 with other inputs: what is overridden in their scenarios, and what the flow engine finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from statistics import fmean
from types import MappingProxyType
from typing import Final

from testbed.api import prepare
from testbed.experiment.experiment import Experiment
from testbed.metrics.job_metrics import job_metrics
from testbed.reproduce.flow_entries import flow_runs
from testbed.results.record import RunRecord
from workloads.models.figure_calibration import A_PRIORI, EQUALLY_FITTED, FigureInputs, calibrations

ENOUGH: Final = ("measure={iterations: 5, warmup: 2, time_limit: 100s}",)
"""Options of all runs: as many iterations as means over many hash seeds need."""


def overrides(scenario: str, inputs: FigureInputs) -> tuple[str, ...]:
    """Return the ``--set`` options that give the jobs of ``scenario`` these inputs; alone they stay as they are."""
    found = [f"channels={inputs.channels}"]
    chosen = calibrations(scenario, inputs)
    for job in _jobs_of(scenario):
        one = chosen[job.partition("-")[0]]
        found.append(f"jobs.{job}.compute={one.compute_s:.9g}s")
        found.append(f"jobs.{job}.overlap={one.overlap:.9f}")
        found.append(f"jobs.{job}.communication={one.gradient_bytes / 1e9:.9g}GB")
    return tuple(found)


@cache
def _jobs_of(scenario: str) -> tuple[str, ...]:
    return tuple(job.name for job in prepare(scenario).jobs)


def computed(scenario: str, scheduler: str, changed: tuple[str, ...], seed: int) -> dict[str, tuple[int, float, float]]:
    """Return job -> (GPUs, utilisation, mean iteration in s) by simulated packets, ``changed`` overridden."""
    overridden = (*ENOUGH, *changed)
    (experiment,) = prepare(
        scenario, engine="simulation", schedulers=[scheduler], overrides=overridden, seed=seed
    ).experiments
    found: dict[str, tuple[int, float, float]] = {}
    for part, record in flow_runs(experiment):
        found |= _jobs(part, record)
    return found


def _jobs(experiment: Experiment, record: RunRecord) -> dict[str, tuple[int, float, float]]:
    found = {}
    for job in experiment.jobs:
        times = job_metrics(record, job).times
        if times is not None:
            found[job.name] = (len(job.gpus), job.compute_s / times.mean, times.mean)
    return found


def mean_utilization(jobs: dict[str, tuple[int, float, float]]) -> float:
    """The mean of the jobs' utilisations weighted by their GPUs, as the paper's bars."""
    return sum(gpus * busy for gpus, busy, _ in jobs.values()) / sum(gpus for gpus, _, _ in jobs.values())


def a_priori(scenario: str, seeds: Iterable[int]) -> dict[str, float]:
    """Return the numbers of a row by the flow engine with the inputs that were chosen before anything was compared."""
    alone = mean_utilization(computed(scenario, "ideal", overrides(scenario, A_PRIORI), 1))
    return {**numbers(scenario, A_PRIORI, tuple(seeds)), "ideal": alone}


def ranges(scenario: str, seeds: Iterable[int]) -> dict[str, float]:
    """Return the least and the most of each number of a row over inputs that the bars without Crux do not tell apart.

    By the flow engine. The keys are those of :func:`numbers` with ``_least`` and ``_most``.
    """
    every = [numbers(scenario, inputs, tuple(seeds)) for inputs in EQUALLY_FITTED]
    least = {f"{key}_least": min(each[key] for each in every) for key in every[0]}
    return least | {f"{key}_most": max(each[key] for each in every) for key in every[0]}


@cache
def numbers(scenario: str, inputs: FigureInputs, seeds: tuple[int, ...]) -> Mapping[str, float]:
    """Return utilisations without and with Crux, gain in points and changes of JCT by kind, means over ``seeds``."""
    changed = overrides(scenario, inputs)
    every = [(computed(scenario, "ecmp", changed, seed), computed(scenario, "crux", changed, seed)) for seed in seeds]
    without, crux = (fmean(mean_utilization(pair[side]) for pair in every) for side in (0, 1))
    changes: dict[str, list[float]] = {}
    for before, after in every:
        for job in before.keys() & after.keys():
            changes.setdefault(f"jct_{job.partition('-')[0]}", []).append(after[job][2] / before[job][2] - 1)
    found = {"without": without, "crux": crux, "gain_points": 100 * (crux - without)}
    return MappingProxyType(found | {key: fmean(values) for key, values in sorted(changes.items())})
