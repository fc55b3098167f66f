"""Lyra's loans beside communication schedulers: a replay in which hosts of slower GPUs come and go.

Jobs of the synthetic trace (or of another) on the Clos of Crux's simulations, whose last quarter of hosts serves
inference and is lent by the time of day. On T4s compute takes 1.94 times as long and the bytes stay. Jobs may run on
either type; 5 % of those of the synthetic trace are elastic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from controller.schedulers.registry import create
from testbed.engines.replay.inputs import TraceJobs, clos_of_the_paper, requests_of
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.outcome import Replayed, manager_metrics
from testbed.engines.replay.replay import Replay
from testbed.progress import Progress
from testbed.reproduce.kept_replays import DAY_S, cell, trace_note, trace_of
from testbed.reproduce.paper_experiment import PaperRow, Settings
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


ROWS: Final = MappingProxyType(
    {
        "without loans": Row(lyra=False),
        "Lyra without loans": Row(),
        "Lyra, V100s on loan": Row(gpu_type="V100"),
        "Lyra, T4s on loan": Row(gpu_type="T4"),
    }
)


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per manager, with its numbers under each scheduler."""
    trace = trace_of(cell(settings, "clos", SCHEDULERS[0]))
    if settings.trace is None:
        trace = with_elastic_jobs(trace, settings.seed)
    fabric = clos_of_the_paper()
    rows: list[PaperRow] = []
    for label, row in ROWS.items():
        here: dict[str, float] = {}
        for scheduler in SCHEDULERS:
            progress.phase(f"{label}, {scheduler}")
            done = replayed(fabric, trace, row, scheduler, settings.seed, settings.days * DAY_S)
            here[f"{scheduler}_utilization"] = done.gpu_utilization
            metrics = {key: value for key, value in manager_metrics(done).items() if isinstance(value, int | float)}
            here |= {f"{scheduler}_{key}": float(value) for key, value in metrics.items()}
        rows.append(PaperRow(label, {}, here, trace_note(trace)))
    return rows


def replayed(fabric: Fabric, trace: Trace, row: Row, scheduler: str, seed: int, until_s: float) -> Replayed:
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
