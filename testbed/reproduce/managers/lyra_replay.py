"""Lyra's loans beside communication schedulers: a replay in which hosts of slower GPUs come and go.

Jobs of the synthetic trace (or of another) on the Clos of Crux's simulations, whose last quarter of hosts serves
inference and is lent by the time of day. On T4s compute takes 1.94 times as long and the bytes stay. Jobs may run on
either type; 5 % of those of the synthetic trace are elastic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final

from controller.schedulers.registry import create
from testbed.engines.replay.inputs import TraceJobs, clos_of_the_paper, requests_of
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.outcome import Replayed, manager_metrics
from testbed.engines.replay.replay import Replay
from testbed.fluid.numerical_settings import NUMERICAL_SETTINGS, STANDARD, NumericalSettings
from testbed.progress import Progress
from testbed.reproduce.kept_replays import DAY_S, cell, trace_note, trace_of
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.replay_ensembles import Ensemble, Variant, points_numbers, variants_of
from topologies.fabric import Fabric
from workloads.managers.manager import Manager
from workloads.managers.registry import manager
from workloads.traces.synthetic import with_elastic_jobs
from workloads.traces.trace import Trace

LENT_SHARE: Final = 0.25
SCHEDULERS: Final = ("ecmp", "crux")


@dataclass(frozen=True, slots=True)
class Row:
    """Whether Lyra decides, and what it may borrow: nothing, or hosts with a type of GPU."""

    lyra: bool = True
    gpu_type: str | None = None


FIRST: Final = "without loans"
"""The row that the others are compared with."""
ROWS: Final = MappingProxyType(
    {
        FIRST: Row(lyra=False),
        "Lyra without loans": Row(),
        "Lyra, V100s on loan": Row(gpu_type="V100"),
        "Lyra, T4s on loan": Row(gpu_type="T4"),
    }
)


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per manager, with its numbers under each scheduler: means over seeds and numerical settings.

    Differences: of the second scheduler to the first, and of each row to the first row under the same scheduler.
    """
    fabric, variants = clos_of_the_paper(), variants_of(settings)
    traces = {seed: _trace(settings, seed) for seed, _ in variants}
    busy: dict[tuple[str, str], Ensemble] = {}
    rows: list[PaperRow] = []
    for label, row in ROWS.items():
        here: dict[str, float] = {}
        for scheduler in SCHEDULERS:
            metrics: dict[Variant, dict[str, float]] = {}
            for seed, name in variants:
                progress.phase(f"{label}, {scheduler}, seed {seed}, numerical settings {name}")
                until_s, numerics = settings.days * DAY_S, NUMERICAL_SETTINGS[name]
                done = replayed(fabric, traces[seed], row, scheduler, seed, until_s, numerics)
                metrics[seed, name] = {**manager_metrics(done), "utilization": done.gpu_utilization}
            busy[label, scheduler] = Ensemble({each: found["utilization"] for each, found in metrics.items()})
            here |= _means(scheduler, metrics) | busy[label, scheduler].numbers(f"{scheduler}_utilization")
            if label != FIRST:
                against = busy[label, scheduler].against(busy[FIRST, scheduler])
                here |= points_numbers(f"{scheduler}_loans_points", against)
        first, second = (busy[label, scheduler] for scheduler in SCHEDULERS)
        here |= points_numbers(f"{SCHEDULERS[1]}_points", second.against(first))
        rows.append(PaperRow(label, {}, here, trace_note(traces[settings.seed])))
    return rows


def _trace(settings: Settings, seed: int) -> Trace:
    trace = trace_of(replace(cell(settings, "clos", SCHEDULERS[0]), seed=seed))
    return with_elastic_jobs(trace, seed) if settings.trace is None else trace


def _means(scheduler: str, metrics: Mapping[Variant, Mapping[str, float]]) -> dict[str, float]:
    """The means over variants of the numbers that all of them have."""
    every = list(metrics.values())
    numbers = [key for key, value in every[0].items() if isinstance(value, int | float)]
    return {f"{scheduler}_{key}": fmean(float(found[key]) for found in every) for key in numbers}


def replayed(
    fabric: Fabric,
    trace: Trace,
    row: Row,
    scheduler: str,
    seed: int,
    until_s: float,
    numerics: NumericalSettings = STANDARD,
) -> Replayed:
    """Return the replay of one row under one scheduler."""
    jobs = TraceJobs(fabric)
    return Replay(
        fabric,
        create(scheduler, {}, seed),
        ManagedPlacing(manager_of(row, fabric), fabric, jobs.stage_times),
        requests_of(trace, seed),
        jobs.build,
        seed=seed,
        until_s=until_s,
        numerics=numerics,
    ).run()


def manager_of(row: Row, fabric: Fabric) -> Manager:
    """Return the manager of a row; the hosts of inference are absent unless they are lent."""
    hosts = tuple(fabric.hosts)
    inference = hosts[len(hosts) - round(LENT_SHARE * len(hosts)) :]
    options: dict[Any, dict[str, object]] = {"capacity": {"hosts": inference}}
    if not row.lyra:
        return manager("consolidated", policy="gang", capacity="inference", options=options)
    if row.gpu_type is not None:
        options["capacity"]["gpu_type"] = row.gpu_type
    options["policy"] = {"loan_hosts": inference if row.gpu_type is not None else (), "resize_s": 30.0}
    return manager("elastic-groups", policy="lyra", capacity="inference", options=options)
