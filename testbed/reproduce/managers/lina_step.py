"""Lina's training step on emulated packets: gradients after, concurrent with, or below its all-to-alls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final

from testbed.errors import BadInputError
from testbed.progress import Progress
from testbed.reproduce.kept_runs import Execute, RunOutcome, Runs, Task, Treatment, emulate, exit_status, not_ok
from testbed.reproduce.paper_experiment import PaperRow, Settings

SCENARIO: Final = "lina.yaml"
PAPER: Final = 1.73
BITS: Final[Mapping[str, int]] = MappingProxyType({"gradients in 16 bits": 16, "in 32 bits": 32, "in 4 bits": 4})
"""Row -> bits per gradient element: the volume that competes with the all-to-alls."""
Entry = Mapping[str, Any]


def treatments(bits: int) -> dict[str, Treatment]:
    """Return the variants that a row compares."""
    options = f"bits: {bits}"
    return {
        "after_s": Treatment(f"after-{bits}", "ecmp", (f"jobs.moe.gradients={{{options}}}",)),
        "evenly_s": Treatment(f"evenly-{bits}", "ecmp", (f"jobs.moe.gradients={{{options}, background: true}}",)),
        "first_s": Treatment(f"first-{bits}", "lina", (f"jobs.moe.gradients={{{options}, background: true}}",)),
    }


def reproduce(settings: Settings, progress: Progress, execute: Execute = emulate) -> Sequence[PaperRow]:
    """Return a row per size of the gradients, means over the seeds."""
    if settings.only:
        raise BadInputError(f"--row {settings.only[0]}: lina-step makes all its rows, expected no --row")
    seeds = range(settings.seed, settings.seed + settings.seeds)
    wanted = {
        label: {key: [Task(SCENARIO, each, seed) for seed in seeds] for key, each in treatments(bits).items()}
        for label, bits in BITS.items()
    }
    every = [task for row in wanted.values() for tasks in row.values() for task in tasks]
    found = Runs(settings.out, redo=settings.redo, execute=execute).all(every, progress)
    return [_row(label, row, found) for label, row in wanted.items()]


def _row(label: str, wanted: Mapping[str, Sequence[Task]], found: Mapping[Task, RunOutcome]) -> PaperRow:
    tasks = [task for each in wanted.values() for task in each]
    entries = {key: [entry for task in each if (entry := found[task].entry)] for key, each in wanted.items()}
    here = {key: fmean(_step_s(entry) for entry in each) for key, each in entries.items() if each}
    if "evenly_s" in here and "first_s" in here:
        here["faster"] = here["evenly_s"] / here["first_s"]
    paper = {"faster": PAPER} if label == next(iter(BITS)) else {}
    return PaperRow(label, paper, here, not_ok(tasks, found), exit_status(found[task] for task in tasks))


def _step_s(entry: Entry) -> float:
    return float(entry["jobs"][0]["iteration_s"]["mean"] or 0.0)
