"""Every manager on one scenario of job arrivals, emulated and by the flow engine."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final

from testbed.api import run_scenario
from testbed.errors import BadInputError
from testbed.progress import Progress
from testbed.reproduce.kept_runs import Execute, Runs, Task, Treatment, emulate, exit_status, not_ok
from testbed.reproduce.paper_experiment import PaperRow, Settings
from workloads.managers.catalogue import MANAGERS

SCENARIO: Final = "arrivals.yaml"
SHORT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "philly": "policy: {wait_s: 2, back_off_s: 2}",
        "tiresias": "policy: {limits: [100], restart_s: 0.5}",
        "tiresias-rounds": "policy: {limits: [100], restart_s: 0.5, round_s: 10}",
        "gandiva": "policy: {slice_s: 10, trial_s: 10, look_s: 5}",
        "gandiva-slicing": "policy: {slice_s: 10}",
        "gandiva-growing": "policy: {look_s: 5}",
        "optimus": "policy: {round_s: 10, restart_s: 0.5}",
        "lyra": "policy: {restart_s: 0.5, resize_s: 0.2}",
        "muri-s": "policy: {round_s: 10}",
        "muri-l": "policy: {order: attained, round_s: 10}",
    }
)
"""Options for jobs of seconds; the defaults suit jobs of hours."""
SHOWN: Final = (
    "jct_mean_s",
    "jct_p95_s",
    "queue_mean_s",
    "makespan_s",
    "allocated",
    "preemptions",
    "migrations",
    "hosts_per_job",
)


def treatment(manager: str) -> Treatment:
    """Return the treatment: Crux under ``manager``."""
    options = f", {SHORT[manager]}" if manager in SHORT else ""
    return Treatment(f"crux-{manager}", "crux", (f"manager={{name: {manager}{options}}}",))


def reproduce(settings: Settings, progress: Progress, execute: Execute = emulate) -> Sequence[PaperRow]:
    """Return a row per manager of ``settings.only``, or of all managers."""
    unknown = [name for name in settings.only if name not in MANAGERS]
    if unknown:
        raise BadInputError(f"--row {unknown[0]}: no such manager, expected one of: {', '.join(MANAGERS)}")
    names = settings.only or tuple(MANAGERS)
    seeds = range(settings.seed, settings.seed + max(1, settings.seeds))
    wanted = {name: [Task(SCENARIO, treatment(name), seed) for seed in seeds] for name in names}
    every = [task for tasks in wanted.values() for task in tasks]
    found = Runs(settings.out, redo=settings.redo, execute=execute).all(every, progress)
    rows: list[PaperRow] = []
    progress.phase("flow engine", len(names))
    for place, (name, tasks) in enumerate(wanted.items(), 1):
        measured = _means([_numbers(entry) for task in tasks if (entry := found[task].entry)])
        expected = _means([_numbers(_computed(task)) for task in tasks])
        here = {**measured, **{f"{key}_flow": value for key, value in expected.items()}}
        rows.append(PaperRow(name, {}, here, not_ok(tasks, found), exit_status(found[task] for task in tasks)))
        progress.advance_to(place)
    return rows


def _means(numbers: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means over the seeds."""
    return {key: fmean(each[key] for each in numbers) for key in (numbers[0] if numbers else ())}


def _computed(task: Task) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory(prefix="packets-") as folder:
        overrides = [*task.treatment.overrides, "checks=[]"]
        result = run_scenario(task.scenario, engine="flow", overrides=overrides, seed=task.seed, out=Path(folder))
        entry: Mapping[str, Any] = result.summary["runs"][0]
        return entry


def _numbers(entry: Mapping[str, Any]) -> dict[str, float]:
    told = entry["manager"]
    numbers = {key: float(told[key]) for key in SHOWN}
    return {"utilization": float(entry["gpu_utilization"]), **numbers, "unfinished": float(len(told["unfinished"]))}
